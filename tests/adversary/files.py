"""Damaged `.nerm` files: flipped bits, cuts, exchanged numbers. Each is refused by an error, or harmless."""

from __future__ import annotations

import io
import json
import time
import warnings
import zipfile
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import nerm

STRANGE = [
    None,
    True,
    -1,
    0,
    3,
    1e300,
    "",
    "x",
    [],
    {},
    {"$float": "nan"},
    {"$float": "inf"},
    {"$array": 99},
    10**400,
]


def whole() -> list[bytes]:
    """Return the bytes of a saved solution, a model and a kernel model."""
    rng = np.random.default_rng(0)
    X, v = rng.normal(size=(20, 3)), np.where(rng.random(20) < 0.5, 1, -1)
    y = np.where(X[:, 0] > 0, 1, -1)
    objective = nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + nerm.Neutrality(nerm.Hinge())
    things = [
        objective.on(X, y, viewpoint=v).solve(),
        nerm.NeutralSVC(eta=0.1).fit(X, y, viewpoint=v),
        nerm.NERMClassifier(kernel="rbf", lam=0.01, eta=0.0).fit(X, y),
    ]
    with TemporaryDirectory() as folder:
        for number, thing in enumerate(things):
            thing.save(f"{folder}/{number}.nerm")
        return [Path(f"{folder}/{number}.nerm").read_bytes() for number in range(len(things))]


def damaged(rng: np.random.Generator, data: bytes) -> bytes:
    """Return a file with flipped bits, cut short, or with another number in its header or arrays."""
    how = rng.integers(3)
    if how == 0:
        changed = bytearray(data)
        for place in rng.integers(0, len(data), size=rng.integers(1, 4)):
            changed[place] ^= 1 << rng.integers(8)
        return bytes(changed)
    if how == 1:
        return data[: rng.integers(0, len(data))]
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    if rng.random() < 0.5:
        members["header.json"] = json.dumps(_exchanged(rng, json.loads(members["header.json"]))).encode()
    else:
        name = str(rng.choice([name for name in members if name.endswith(".npy")]))
        array = np.load(io.BytesIO(members[name]), allow_pickle=False)
        if array.size and array.dtype.kind == "f":
            array.flat[rng.integers(array.size)] = rng.choice([np.nan, np.inf, 1e308, 0.0])
        buffer = io.BytesIO()
        np.save(buffer, array if rng.random() < 0.7 else array.ravel()[:-1], allow_pickle=False)
        members[name] = buffer.getvalue()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return made.getvalue()


def _exchanged(rng: np.random.Generator, tree):
    """Return a tree with one of its leaves or branches exchanged for something strange."""
    if not isinstance(tree, dict | list) or not tree or rng.random() < 0.1:
        return STRANGE[rng.integers(len(STRANGE))]
    key = list(tree)[rng.integers(len(tree))] if isinstance(tree, dict) else int(rng.integers(len(tree)))
    changed = dict(tree) if isinstance(tree, dict) else list(tree)
    changed[key] = _exchanged(rng, tree[key])
    return changed


def outcome(path: Path) -> str:
    """Load a file and use its content; return the outcome."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            thing = nerm.load(path)
    except nerm.NermError:
        return "refused"
    except Exception as error:
        return f"exception {type(error).__name__}: {error}"
    numbers = (
        [thing.coef, thing.intercept]
        if isinstance(thing, nerm.Solution)
        else [s.coef for s in thing.solutions_]
    )
    return "harmless" if all(np.isfinite(part).all() for part in numbers) else "numbers that are not finite"


def fuzz(seconds: float, seed: int = 0, most: int | None = None) -> Counter:
    """Damage and load files until time is up or `most` is reached; return counts of outcomes."""
    rng, files, counts = np.random.default_rng(seed), whole(), Counter()
    deadline = time.monotonic() + seconds
    with TemporaryDirectory() as folder:
        path = Path(folder) / "damaged.nerm"
        while time.monotonic() < deadline and (most is None or counts.total() < most):
            path.write_bytes(damaged(rng, files[rng.integers(len(files))]))
            counts[outcome(path)] += 1
    return counts
