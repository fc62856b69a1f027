"""Export a fitted classifier: as an ONNX graph, or as a model card in Markdown."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from scipy.stats import binomtest
from sklearn.utils.validation import check_is_fitted

from nerm.errors import InvalidInputError, MissingPackageError
from nerm.metrics import report
from nerm.typing import Array
from nerm.validation import as_values, distinct

__all__ = ["card", "onnx"]


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
    try:
        o = import_module("onnx")
    except ImportError:
        raise MissingPackageError("nerm.export.onnx needs the package onnx: pip install onnx.") from None
    nodes: list[Any] = []
    constants: dict[str, Array] = {}

    def node(kind: str, inputs: list[Any], **options: Any) -> str:
        """Append a node, with numbers and arrays as constants; return the name of its output."""
        names = []
        for value in inputs:
            if not isinstance(value, str):
                constants[f"constant {len(constants)}"] = np.asarray(value)
                value = f"constant {len(constants) - 1}"
            names.append(value)
        nodes.append(o.helper.make_node(kind, names, [f"node {len(nodes)}"], **options))
        return f"node {len(nodes) - 1}"

    if model.kernel_ is None:
        scores = node("Gemm", ["X", model.coef_.T, model.intercept_])
    else:
        scores = node("Gemm", [_kernel_values(model, node), model.dual_coef_.T, model.intercept_])
    if len(model.classes_) == 2:
        number = node("Cast", [node("Greater", [scores, np.zeros(1)])], to=o.TensorProto.INT64)
        number = node("Squeeze", [number, np.array([1])])
        scores = node("Squeeze", [scores, np.array([1])])
    else:
        number = node("ArgMax", [scores], axis=1, keepdims=0)
    classes = model.classes_.astype(np.int64 if model.classes_.dtype.kind in "biu" else str)
    words = classes.dtype.kind == "U"
    label = node("Gather", [classes.astype(object) if words else classes, number])
    for inner, outer in ((scores, "scores"), (label, "label")):
        nodes.append(o.helper.make_node("Identity", [inner], [outer]))
    kind = o.TensorProto.STRING if words else o.TensorProto.INT64
    shape = ["n"] if len(model.classes_) == 2 else ["n", len(model.classes_)]
    double = o.TensorProto.DOUBLE
    made = o.helper.make_graph(
        nodes,
        "nerm",
        [o.helper.make_tensor_value_info("X", double, ["n", model.n_features_in_])],
        [
            o.helper.make_tensor_value_info("scores", double, shape),
            o.helper.make_tensor_value_info("label", kind, ["n"]),
        ],
        [o.numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    opset = [o.helper.make_opsetid("", 18)]
    found = o.helper.make_model(made, opset_imports=opset, ir_version=10, producer_name="nerm")
    o.checker.check_model(found, full_check=True)
    return found


def _kernel_values(model: Any, node: Any) -> str:
    """Add the nodes of k(x, x_i) for the support vectors x_i; return the name of their output, (n, m)."""
    kernel, Z = model.kernel_, model.support_vectors_
    name = getattr(kernel, "name", "")
    if name not in ("rbf", "polynomial"):
        must = "an exported kernel must be linear, rbf or polynomial"
        raise InvalidInputError(must, repr(kernel), "Fit the model with one of these")
    Z = Z.toarray() if hasattr(Z, "toarray") else np.asarray(Z)
    kept = node("Gather", ["X", model._kept_columns()], axis=1)
    p = kernel.parameters()
    if name == "rbf":  # gamma ||x - z||^2 as a sum over columns of differences, which loses no digits
        difference = node("Sub", [node("Unsqueeze", [kept, np.array([1])]), Z[None]])
        squares = node("ReduceSumSquare", [difference, np.array([2])], keepdims=0)
        return str(node("Exp", [node("Mul", [squares, np.array(-p["gamma"])])]))
    inner = node("Add", [node("MatMul", [kept, p["gamma"] * Z.T]), np.array(p["coef0"])])
    return str(node("Pow", [inner, np.array(float(p["degree"]))]))


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
        raise InvalidInputError(must, f"{len(head.classes_)}", "Write one per class against the rest")
    scores = np.asarray(model.decision_function(X))
    groups, labels = as_values(viewpoint, len(scores), "viewpoint"), np.asarray(y) == head.classes_[1]
    names = distinct(groups, "viewpoint").tolist()
    limit = "none"
    if head.limit is not None:
        limit = (
            f"{head.measure} within {head.limit:g} on the training rows; it is {head.neutrality_:.4f} there"
        )
    promise, certificate = getattr(head, "promise_", None), head.certificate_
    convex = np.isfinite(certificate.relative_gap)
    lines = [
        "# Model card",
        "",
        f"- Data: {data or 'not stated'}",
        f"- Target: {target or 'not stated'}",
        f"- Limit: {limit}",
        f"- Promise for new rows: {'none' if promise is None else promise}",
        f"- Objective: {head.solutions_[0].problem.objective}",
        "",
        "## Certificate",
        "",
    ]
    if convex:
        gap = f"{certificate.relative_gap:.1e}"
        lines.append(f"The objective is proved to be at most {gap} (relative) above its smallest value.")
    else:
        lines.append("The surrogate is not convex: the model is a stationary point, and no gap is proved.")
    if head is not model:
        lines.append(
            f"This is about the last layer. The base model, {type(model.base_).__name__}, is not certified."
        )
    lines += ["", "## Rates", "", f"Measured on {len(scores):,} rows; 95 % intervals by Wilson.", ""]
    lines += ["| group | rows | positive rate | interval | accuracy |", "|---|---|---|---|---|"]
    every = np.ones(len(scores), dtype=bool)
    for name, among in [("all", every), *((name, groups == name) for name in names)]:
        yes, right = scores[among] > 0, (scores[among] > 0) == labels[among]
        low, high = binomtest(int(yes.sum()), len(yes)).proportion_ci(method="wilson")
        lines.append(
            f"| {name} | {len(yes)} | {yes.mean():.4f} | {low:.4f} to {high:.4f} | {right.mean():.4f} |"
        )
    base = max(labels.mean(), 1 - labels.mean())
    lines += ["", f"Accuracy of the more frequent class alone: {base:.4f}."]
    if len(names) == 2:
        found = report(np.where(labels, 1, -1), scores, np.where(groups == names[1], 1, -1))
        lines += ["", f"## Measures, {names[1]} against {names[0]}", ""]
        lines += [f"- {name}: {value:.4f}" for name, value in found.measures.items() if np.isfinite(value)]
    lines += ["", "## Not known", ""]
    lines.append("- How the model behaves on rows from another population than those above.")
    if promise is None:
        lines.append("- Whether the limit holds on new rows: no promise was asked for.")
    lines.append("- Whether the labels themselves are fair, and groups other than the viewpoint.")
    return "\n".join(lines) + "\n"
