"""Export a fitted classifier: as an ONNX graph, or as a model card in Markdown."""

from __future__ import annotations

from typing import Any

import jinja2
import numpy as np
from scipy.stats import binomtest
from sklearn.utils.validation import check_is_fitted

from nerm.errors import InvalidInputError, import_optional
from nerm.metrics import report
from nerm.typing import Array, Bools
from nerm.validation import as_values, distinct

__all__ = ["card", "onnx"]

#: Values of the kernel, (n, number of support vectors), in the text format of ONNX. The sum over columns of
#: differences, gamma ||x - z||^2, loses no digits.
KERNELS = {
    "linear": "values = Identity (X)",
    "rbf": """
        kept = Gather <axis = 1> (X, columns)
        rows = Unsqueeze (kept, first)
        difference = Sub (rows, support)
        squares = ReduceSumSquare <keepdims = 0> (difference, second)
        exponent = Mul (squares, minus_gamma)
        values = Exp (exponent)""",
    "polynomial": """
        kept = Gather <axis = 1> (X, columns)
        inner = Gemm (kept, gamma_support, coef0)
        values = Pow (inner, degree)""",
}
#: The whole graph. With two classes, padding adds a column of zeros: class +1 needs a positive score.
GRAPH = """
    <ir_version: 10, opset_import: ["" : 18], producer_name: "nerm">
    nerm (double[n, {d}] X) => (double[{shape}] scores, {kind}[n] label) {{
        {kernel}
        each = Gemm (values, coef, intercept)
        scores = Reshape (each, shape)
        padded = Pad (each, pads)
        number = ArgMax <axis = 1, keepdims = 0> (padded)
        label = Gather (classes, number)
    }}"""


def onnx(model: Any) -> Any:
    """Return a linear, rbf or polynomial classifier as an ONNX model.

    The graph has one input "X", (n, d), and two outputs: "scores", which is f(x) = X w + b or
    f(x) = sum_i c_i k(x, x_i) + b, and "label", the predicted class. Numbers are in double precision. Boolean
    classes become 0 and 1; classes that are floats become text.

    Parameters
    ----------
    model : NeutralSVC or NERMClassifier
        Fitted, with a linear, rbf or polynomial kernel.

    Returns
    -------
    onnx.ModelProto
        ``onnx.save(nerm.export.onnx(model), "model.onnx")`` writes it to a file.

    >>> import nerm
    >>> model = nerm.NeutralSVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> graph = onnx(model).graph  # doctest: +SKIP
    >>> [node.op_type for node in graph.node][0]  # doctest: +SKIP
    'Gemm'
    """
    check_is_fitted(model, "solutions_")
    o = import_optional("onnx", "nerm.export.onnx", "onnx")
    import_optional("onnx.parser", "nerm.export.onnx", "onnx")
    name = "linear" if model.kernel_ is None else getattr(model.kernel_, "name", "")
    if name not in KERNELS:
        must = "an exported kernel must be linear, rbf or polynomial"
        raise InvalidInputError(must, repr(model.kernel_), "Fit the model with one of these")
    two, kind = len(model.classes_) == 2, "int64" if model.classes_.dtype.kind in "biu" else "string"
    classes = model.classes_.astype(np.int64 if kind == "int64" else str)
    arrays = _kernel_arrays(model, name) | {
        "intercept": model.intercept_,
        "shape": np.array([-1] if two else [-1, len(classes)]),
        "pads": np.array([0, int(two), 0, 0]),
        "classes": classes.astype(object) if kind == "string" else classes,
    }
    shape = "n" if two else f"n, {len(classes)}"
    text = GRAPH.format(d=model.n_features_in_, shape=shape, kind=kind, kernel=KERNELS[name])
    found = o.parser.parse_model(text)
    found.graph.initializer.extend(o.numpy_helper.from_array(array, key) for key, array in arrays.items())
    o.checker.check_model(found, full_check=True)
    return found


def _kernel_arrays(model: Any, name: str) -> dict[str, Array]:
    """Return the constants of the coefficients and of the kernel, by their names in the graph."""
    if name == "linear":
        return {"coef": model.coef_.T}
    Z, p = model.support_vectors_, model.kernel_.parameters()
    Z = Z.toarray() if hasattr(Z, "toarray") else np.asarray(Z)
    arrays = {"coef": model.dual_coef_.T, "columns": np.asarray(model._kept_columns())}
    if name == "rbf":
        axes = {"first": np.array([1]), "second": np.array([2])}
        return arrays | axes | {"support": Z[None], "minus_gamma": np.array(-p["gamma"])}
    scaled = {"gamma_support": p["gamma"] * Z.T, "coef0": np.array(p["coef0"])}
    return arrays | scaled | {"degree": np.array(float(p["degree"]))}


def card(model: Any, X: Any, y: Any, viewpoint: Any, *, data: str = "", target: str = "") -> str:
    """Return a model card in Markdown: limit, certificate, rates by group, open questions.

    Parameters
    ----------
    model : classifier
        A fitted `NeutralSVC`, `NERMClassifier` or `NeutralHead` of two classes.
    X, y, viewpoint
        Rows to measure the model on, preferably rows that it was not fitted on. The viewpoint holds groups.
    data, target : str
        Descriptions of the rows and of the predicted quantity.

    >>> import nerm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 3)); y = X[:, 0] > 0; v = X[:, 0] + X[:, 1] > 0
    >>> model = nerm.NERMClassifier(limit=0.05).fit(X[:100], y[:100], viewpoint=v[:100])
    >>> print(card(model, X[100:], y[100:], v[100:], data="random rows").partition("## Certificate")[0])
    # Model card
    <BLANKLINE>
    - Data: random rows
    - Target: not stated
    - Limit: calders_verwer_score within 0.05 on the training rows; it is ... there
    - Promise for new rows: none
    ...
    """
    head = getattr(model, "head_", model)
    check_is_fitted(head, "solutions_")
    if len(head.classes_) != 2:
        must = "a model card is for two classes"
        raise InvalidInputError(must, f"{len(head.classes_)}", "Fit one model per class against the rest")
    scores = np.asarray(model.decision_function(X))
    groups, labels = as_values(viewpoint, len(scores), "viewpoint"), np.asarray(y) == head.classes_[1]
    names = distinct(groups, "viewpoint").tolist()
    rates = [_rates(name, scores[groups == name] > 0, labels[groups == name]) for name in names]
    measures = {}
    if len(names) == 2:
        measures = report(np.where(labels, 1, -1), scores, np.where(groups == names[1], 1, -1)).measures
    loader = jinja2.PackageLoader("nerm", ".")
    options: dict[str, Any] = {"trim_blocks": True, "keep_trailing_newline": True}
    environment = jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, **options)
    return environment.get_template("card.md.j2").render(
        data=data,
        target=target,
        model=model,
        head=head,
        proved=bool(np.isfinite(head.certificate_.relative_gap)),
        rates=[_rates("all", scores > 0, labels), *rates],
        most_frequent=max(labels.mean(), 1 - labels.mean()),
        names=names,
        measures=measures,
    )


def _rates(group: Any, positive: Bools, labels: Bools) -> dict[str, Any]:
    """Return the positive rate of a group with its interval, and its accuracy."""
    low, high = binomtest(int(positive.sum()), len(positive)).proportion_ci(method="wilson")
    found = {"rows": len(positive), "rate": positive.mean(), "low": low, "high": high}
    return found | {"group": group, "accuracy": (positive == labels).mean()}
