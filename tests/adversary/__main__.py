"""`python -m tests.adversary --seconds 1800 [--seed 0] [--tier extreme]`: the attack, as long as there is time."""

from __future__ import annotations

import argparse
import itertools
import time

from tests.adversary.attack import Tally, attack
from tests.adversary.files import fuzz
from tests.adversary.problems import TIERS, case


def main() -> None:
    """Attack, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first problem of each tier")
    parser.add_argument("--tier", choices=TIERS, action="append", help="only these")
    parser.add_argument("--largest", type=int, default=40, help="the most rows")
    parser.add_argument("--files", type=float, default=0.1, help="the share of time for damaged files")
    asked = parser.parse_args()
    tally, until = Tally(loud=True), time.monotonic() + (1 - asked.files) * asked.seconds
    for seed, tier in ((seed, tier) for seed in itertools.count(asked.seed) for tier in asked.tier or TIERS):
        if time.monotonic() > until:
            break
        attack(case(tier, seed, largest=asked.largest), tally)
    print(tally.table())
    if asked.files:
        print(fuzz(asked.seconds * asked.files, asked.seed))


if __name__ == "__main__":
    main()
