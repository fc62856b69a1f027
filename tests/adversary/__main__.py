"""`python -m tests.adversary --seconds 1800 [--seed 0] [--tier extreme]`: solve and check hostile problems."""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator

from tests.adversary.attack import Tally, attack
from tests.adversary.files import fuzz
from tests.adversary.problems import TIERS, Case, case


def main() -> None:
    """Solve hostile problems until time is up, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first problem of each tier")
    parser.add_argument("--tier", choices=TIERS, action="append", help="only these")
    parser.add_argument(
        "--kind", action="append", help="only problems with this in their class, as kernel or group-l2"
    )
    parser.add_argument("--count", type=int, help="the most problems of each tier")
    parser.add_argument("--largest", type=int, default=40, help="the most rows")
    parser.add_argument("--files", type=float, default=0.1, help="the share of time for damaged files")
    asked = parser.parse_args()
    tally = Tally(loud=True)
    deadline = time.monotonic() + (1 - asked.files) * asked.seconds
    last = asked.seed
    streams = [itertools.islice(_wanted(tier, asked), asked.count) for tier in asked.tier or TIERS]
    for one in itertools.chain.from_iterable(zip(*streams, strict=True)):
        if time.monotonic() > deadline:
            break
        attack(one, tally)
        last = one.seed
    print(tally.table())
    print(f"seeds {asked.seed} to {last}")
    if asked.files:
        print(fuzz(asked.seconds * asked.files, asked.seed))


def _wanted(tier: str, asked: argparse.Namespace) -> Iterator[Case]:
    """Return the problems of a tier, one seed after the other, without those of other classes than asked for."""
    problems = (case(tier, seed, largest=asked.largest) for seed in itertools.count(asked.seed))
    return (one for one in problems if not asked.kind or any(kind in one.kind for kind in asked.kind))


if __name__ == "__main__":
    main()
