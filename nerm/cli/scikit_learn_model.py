"""Scores of a scikit-learn model that was saved with skops: read without running anything that is not trusted."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError, MissingPackageError
from nerm.tables import TableTask
from nerm.tables.values import MISSING, missing_in
from nerm.typing import Floats


def scores_of_model(task: TableTask, path: str, trusted: Sequence[str], missing: Sequence[str]) -> Floats:
    """Return a model's score of each row, (n,): its decision function, or the probability minus 1/2.

    Parameters
    ----------
    task
        The rows; the model gets the columns that it saw in fit, numbers as numbers.
    path
        Of the file.
    trusted
        Types to trust beyond those that skops trusts.
    missing
        Further words for "missing".
    """
    model = _loaded(path, trusted)
    names = [str(name) for name in getattr(model, "feature_names_in_", task.inputs)]
    frame = _frame(task, names, (*MISSING, *missing))
    known = [str(label) for label in getattr(model, "classes_", ())]
    if len(known) != 2 or task.target.positive not in known:
        must = f"the model must tell {task.target.positive!r} from another class"
        raise InvalidInputError(
            must, f"a model of {', '.join(known) or 'no classes'}", "Use --positive, or another model"
        )
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(frame), dtype=float)
    else:
        scores = np.asarray(model.predict_proba(frame), dtype=float)[:, 1] - 0.5
    return scores if known[1] == task.target.positive else -scores


def _loaded(path: str, trusted: Sequence[str]) -> Any:
    try:
        from skops import io
    except ImportError:
        raise MissingPackageError(
            "--model needs the package skops. It is not installed. Install it: pip install 'nerm-learn[skops]'."
        ) from None
    if not Path(path).is_file():
        raise InvalidInputError(
            "--model must name a file", f"no file {path!r}", "Write one with skops.io.dump"
        )
    try:
        unknown = sorted(set(io.get_untrusted_types(file=path)) - set(trusted))
    except Exception as error:  # whatever a file that is none of skops' makes of it
        got = f"{path!r}, which skops cannot read ({error})"
        raise InvalidInputError(
            "--model must be a file written by skops.io.dump", got, "Save it again"
        ) from None
    if unknown:
        do = f"If you trust whoever made it, add --trust {unknown[0]}"
        raise InvalidInputError("a saved model must be made of trusted types", ", ".join(unknown), do)
    return io.load(path, trusted=list(trusted))


def _frame(task: TableTask, names: Sequence[str], missing: Sequence[str]) -> Any:
    """Return columns as a model in Python would have them: numbers where all values are, words elsewhere."""
    import pandas as pd

    columns = {}
    for name in names:
        words, numbers = task.table[name].astype(object), task.table.numbers(name)
        absent = missing_in(task.table[name], missing)
        if np.isnan(numbers[~absent]).any():
            words[absent] = None
            columns[name] = words
        else:
            columns[name] = numbers
    return pd.DataFrame(columns)
