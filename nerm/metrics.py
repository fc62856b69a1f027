"""How neutral, and how good: measures of scores against a viewpoint, as plain functions.

Scores f, viewpoints v, labels y and sample weights are (n,) arrays. Scores and viewpoints are real numbers; a
prediction is +1 iff the score is positive, else -1, and the sign of a viewpoint likewise. Sample weights count as
multiplicities: a row of weight 2 is two rows.

C_sgn (:func:`neutrality_risk`) is the paper's measure and it is *uncentred*; read it beside demographic
parity (:func:`calders_verwer_score`) and mutual information (:func:`normalized_prejudice_index`), as
:func:`report` shows them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError, UnknownNameError
from nerm.signs import sign
from nerm.validation import as_labels, as_vector, as_weights

__all__ = [
    "Report",
    "calders_verwer_score",
    "equal_opportunity_difference",
    "equalized_odds_difference",
    "make_neutrality_scorer",
    "neutrality_risk",
    "normalized_mutual_information",
    "normalized_prejudice_index",
    "relaxed_neutrality_risk",
    "report",
]


def neutrality_risk(scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return `C_sgn = |mean(sign f * sign v)|`, the +1/-1 empirical neutrality risk of the paper.

    It is 0 when f agrees with the viewpoint exactly half of the time, 1 when it always agrees or never does. All
    arguments are (n,) (the paper, definition 2).
    With :func:`nerm.weights.balanced_weights` it equals the absolute Calders-Verwer score, and with
    :func:`nerm.weights.equal_opportunity_weights` the absolute equal-opportunity difference.

    >>> neutrality_risk([2.0, 1.0, -1.0, 3.0], [1, 1, 1, -1])
    0.0
    >>> neutrality_risk([2.0, 1.0, -1.0, 3.0], [1, 1, -1, 1])
    1.0
    """
    f, v, w = _aligned(scores, viewpoint, sample_weight)
    return float(abs(w @ (sign(f) * sign(v))) / w.sum())


def relaxed_neutrality_risk(scores: Any, viewpoint: Any, surrogate: Any, sample_weight: Any = None) -> float:
    """Return C_psi = max(C+, C-) with C± = mean(psi(± v f)), the relaxed convex empirical neutrality risk.

    `surrogate` is a margin function psi (anything with `.value(m)`); the other arguments are (n,). The viewpoint enters
    with its value, not its sign. Convexity gives C_psi >= psi(0) whatever the scores. Weights are normalised to mean 1.

    >>> from nerm.atoms import Hinge
    >>> relaxed_neutrality_risk([0.5, 0.5, -0.5, 0.5], [1, 1, 1, 1], Hinge())
    1.25
    """
    f, v, w = _aligned(scores, viewpoint, sample_weight)
    plus = w @ np.asarray(surrogate.value(v * f), dtype=float)
    minus = w @ np.asarray(surrogate.value(-v * f), dtype=float)
    return float(max(plus, minus) / w.sum())


def calders_verwer_score(scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return P(f > 0 given v > 0) - P(f > 0 given v <= 0): demographic parity, signed, in [-1, 1].

    All arguments are (n,).

    >>> calders_verwer_score([1.0, 1.0, -1.0, 1.0], [1, 1, -1, -1])
    0.5
    """
    f, v, w = _aligned(scores, viewpoint, sample_weight)
    return _rate_difference(f, v, w, np.ones(len(f), dtype=bool), "")


def normalized_prejudice_index(scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return NPI = I(Y; V) / sqrt(H(Y) H(V)) with Y = sign f and V = sign v, in [0, 1].

    I is the mutual information and H the entropy of the (weighted) empirical distribution; the base of the
    logarithm cancels. A constant has no entropy and tells nothing: 0/0 counts as 0. All arguments are (n,).

    >>> normalized_prejudice_index([1.0, 1.0, -1.0, -1.0], [1, 1, -1, -1])
    1.0
    >>> normalized_prejudice_index([1.0, 1.0, 1.0, 1.0], [1, 1, -1, -1])
    0.0
    """
    f, v, w = _aligned(scores, viewpoint, sample_weight)
    return _normalized_information(f > 0, v > 0, w)


def normalized_mutual_information(y: Any, scores: Any, sample_weight: Any = None) -> float:
    """Return NMI = I(Y; Yhat) / sqrt(H(Y) H(Yhat)) of the labels and sign f: accuracy in the units of NPI.

    The labels are -1 and +1, or any two values (the larger is +1). 0/0 counts as 0. All arguments are (n,).

    >>> normalized_mutual_information([1, 1, -1, -1], [0.3, 2.0, -1.0, -0.1])
    1.0
    """
    f, _, w = _aligned(scores, scores, sample_weight)
    return _normalized_information(f > 0, _labels(y, len(f)) > 0, w)


def equal_opportunity_difference(y: Any, scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return P(f > 0 given v > 0, y = +1) - P(f > 0 given v <= 0, y = +1): signed, in [-1, 1].

    All arguments are (n,).

    >>> equal_opportunity_difference([1, 1, 1, -1], [1.0, 1.0, -1.0, 1.0], [1, -1, -1, -1])
    0.5
    """
    f, v, w = _aligned(scores, viewpoint, sample_weight)
    return _rate_difference(f, v, w, _labels(y, len(f)) > 0, " and y = +1")


def equalized_odds_difference(y: Any, scores: Any, viewpoint: Any, sample_weight: Any = None) -> float:
    """Return the larger of the absolute differences of true positive rates and of false positive rates.

    The differences are between v > 0 and v <= 0; the value is in [0, 1]. All arguments are (n,).

    >>> equalized_odds_difference([1, 1, -1, -1], [1.0, 1.0, 1.0, -1.0], [1, -1, 1, -1])
    1.0
    """
    f, v, w = _aligned(scores, viewpoint, sample_weight)
    labels = _labels(y, len(f))
    positives = _rate_difference(f, v, w, labels > 0, " and y = +1")
    negatives = _rate_difference(f, v, w, labels <= 0, " and y = -1")
    return max(abs(positives), abs(negatives))


@dataclass(frozen=True, repr=False)
class Report:
    """Quality and neutrality side by side, as numbers; prints as a table.

    A measure that is not defined on the data (an empty group, a single class) is nan, and `undefined` says
    why. `neutrality_risk_if_independent` is `|E sign v| |E sign f|`: what C_sgn would be if predictions of the
    same rate were independent of the viewpoint. C_sgn is uncentred, so that is the number to compare it with.

    Here predictions and viewpoint are independent, and C_sgn is not 0:

    >>> made = report([1, 1, 1, -1], [1.0, 1.0, 1.0, 1.0], [1, 1, 1, -1])
    >>> made.neutrality_risk, made.neutrality_risk_if_independent, made.calders_verwer_score
    (0.5, 0.5, 0.0)
    >>> made.undefined
    {'equal_opportunity_difference': 'some row must have viewpoint -1 and y = +1', 'equalized_odds_difference': ...}
    """

    n: int
    accuracy: float
    auc: float
    normalized_mutual_information: float
    neutrality_risk: float
    neutrality_risk_if_independent: float
    calders_verwer_score: float
    normalized_prejudice_index: float
    equal_opportunity_difference: float
    equalized_odds_difference: float
    undefined: dict[str, str] = field(default_factory=dict, hash=False)

    def as_dict(self) -> dict[str, float]:
        """Return the measures by name: one row of a table (`pandas.Series(report.as_dict())`)."""
        return {name: value for name, value in asdict(self).items() if name != "undefined"}

    def __repr__(self) -> str:
        comments = {
            "neutrality_risk": "C_sgn = |mean(sign f sign v)|; uncentred",
            "neutrality_risk_if_independent": "what C_sgn would be under independence",
            "calders_verwer_score": "P(+1 | v=+1) - P(+1 | v=-1): demographic parity",
            "normalized_prejudice_index": "mutual information of prediction and viewpoint",
            "normalized_mutual_information": "mutual information of prediction and label",
            "equal_opportunity_difference": "the same difference among y = +1",
            "equalized_odds_difference": "worst of the differences among y = +1 and y = -1",
        }
        lines = [f"Report on {self.n} rows"]
        for name, value in self.as_dict().items():
            if name != "n":
                note = self.undefined.get(name, comments.get(name, ""))
                shown = "undefined" if name in self.undefined else f"{value:9.4f}"
                lines.append(f"  {name:<31}{shown:>9}  {note}".rstrip())
        return "\n".join(lines)


def report(y: Any, scores: Any, viewpoint: Any, sample_weight: Any = None) -> Report:
    """Return accuracy, AUC and every neutrality measure of these scores; all arguments are (n,).

    >>> report([1, 1, -1, -1], [0.5, 2.0, -1.0, 0.5], [1, 1, -1, -1])
    Report on 4 rows
      accuracy                          0.7500
      auc                               0.8750
      normalized_mutual_information     0.3456  mutual information of prediction and label
      neutrality_risk                   0.5000  C_sgn = |mean(sign f sign v)|; uncentred
      neutrality_risk_if_independent    0.0000  what C_sgn would be under independence
      calders_verwer_score              0.5000  P(+1 | v=+1) - P(+1 | v=-1): demographic parity
      normalized_prejudice_index        0.3456  mutual information of prediction and viewpoint
      equal_opportunity_difference   undefined  some row must have viewpoint -1 and y = +1
      equalized_odds_difference      undefined  some row must have viewpoint -1 and y = +1
    """
    f, v, w = _aligned(scores, viewpoint, sample_weight)
    labels = _labels(y, len(f))
    undefined: dict[str, str] = {}

    def attempt(name: str, measure: Callable[..., float], *args: Any) -> float:
        try:
            return measure(*args, w)
        except _UndefinedError as error:
            undefined[name] = error.parts[0]
            return float("nan")

    return Report(
        n=len(f),
        accuracy=float(w @ (sign(f) == labels) / w.sum()),
        auc=attempt("auc", _auc, labels, f),
        normalized_mutual_information=_normalized_information(f > 0, labels > 0, w),
        neutrality_risk=neutrality_risk(f, v, w),
        neutrality_risk_if_independent=float(abs(w @ sign(v)) * abs(w @ sign(f)) / w.sum() ** 2),
        calders_verwer_score=attempt("calders_verwer_score", calders_verwer_score, f, v),
        normalized_prejudice_index=_normalized_information(f > 0, v > 0, w),
        equal_opportunity_difference=attempt(
            "equal_opportunity_difference", equal_opportunity_difference, labels, f, v
        ),
        equalized_odds_difference=attempt("equalized_odds_difference", equalized_odds_difference, labels, f, v),
        undefined=undefined,
    )


_OF_SCORES = {m.__name__: m for m in (neutrality_risk, calders_verwer_score, normalized_prejudice_index)}
_OF_LABELS = {m.__name__: m for m in (equal_opportunity_difference, equalized_odds_difference)}


def make_neutrality_scorer(
    metric: str | Callable[..., float] = "neutrality_risk", response_method: str = "decision_function"
) -> Any:
    """Return a scikit-learn scorer, greater is better: minus the absolute value of a neutrality measure.

    `metric` is the name of a measure of this module, or a callable `metric(scores, viewpoint,
    sample_weight=None)`. The scorer asks for the viewpoint by metadata routing, so `GridSearchCV` and
    `cross_validate` slice it with the folds; call `set_score_request(viewpoint=True, sample_weight=True)` to
    have the weights too. Scores are thresholded at 0; with `response_method="predict_proba"` the probability
    of the larger class is, at 1/2.

    A constant prediction is perfectly neutral: select by such a scorer together with one for quality.

    >>> import sklearn
    >>> from sklearn.linear_model import LogisticRegression
    >>> X, y, v = np.array([[0.0], [1.0], [2.0], [3.0]]), [-1, -1, 1, 1], [-1, 1, 1, 1]
    >>> scorer = make_neutrality_scorer("calders_verwer_score")
    >>> with sklearn.config_context(enable_metadata_routing=True):
    ...     round(scorer(LogisticRegression().fit(X, y), X, y, viewpoint=v), 4)
    -0.6667
    """
    if isinstance(metric, str) and metric not in {*_OF_SCORES, *_OF_LABELS}:
        raise UnknownNameError("'metric'", metric, {*_OF_SCORES, *_OF_LABELS}, "Use one of these, or a callable")
    if response_method not in ("decision_function", "predict_proba"):
        raise UnknownNameError("'response_method'", response_method, ("decision_function", "predict_proba"))
    import sklearn
    from sklearn.metrics import make_scorer

    scorer = make_scorer(
        _score,
        response_method=response_method,
        greater_is_better=False,
        metric=metric,
        threshold=0.0 if response_method == "decision_function" else 0.5,
    )
    # The request can be stated only while routing is on; stated here, it holds when that is turned on later.
    with sklearn.config_context(enable_metadata_routing=True):
        return scorer.set_score_request(viewpoint=True)


def _score(
    y: Any, response: Any, *, metric: Any, threshold: float, viewpoint: Any = None, sample_weight: Any = None
) -> float:
    """Return `|metric|`; a function of this module, so that scorers travel to worker processes."""
    if viewpoint is None:
        raise InvalidInputError(
            "a neutrality scorer must be given the viewpoint",
            "none",
            "Pass params={'viewpoint': v} to cross_validate, or viewpoint=v to GridSearchCV.fit",
        )
    viewpoint = _two_sided(viewpoint)
    scores = np.asarray(response, dtype=float) - threshold
    if callable(metric):
        return abs(float(metric(scores, viewpoint, sample_weight=sample_weight)))
    if metric in _OF_SCORES:
        return abs(_OF_SCORES[metric](scores, viewpoint, sample_weight))
    return abs(_OF_LABELS[metric](y, scores, viewpoint, sample_weight))


def _two_sided(viewpoint: Any) -> Any:
    """Return a routed viewpoint as the classifiers read it: numbers of both signs stay, two groups become -1 and +1."""
    values = np.asarray(viewpoint)
    numeric = values.dtype.kind in "biuf"
    if numeric and (((values > 0).any() and (values <= 0).any()) or np.isin(values, (-1, 0, 1)).all()):
        return viewpoint
    groups = np.unique(values.astype(str) if values.dtype.kind == "O" else values)
    if len(groups) != 2:
        raise InvalidInputError(
            "a neutrality scorer must be given numbers of both signs, or two groups",
            f"{len(groups)} values, first {groups[:1].tolist()[0]!r}",
            "Code the viewpoint as -1 and +1, so that every fold can be read",
        )
    return np.where((values.astype(str) if values.dtype.kind == "O" else values) == groups[1], 1.0, -1.0)


class _UndefinedError(InvalidInputError):
    """A measure that the data leave undefined: `report` shows it as such, the plain functions raise it."""


def _aligned(scores: Any, viewpoint: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return scores, viewpoint and weights as checked vectors of one length."""
    n = int(np.size(scores))
    if n == 0:
        raise InvalidInputError(
            "'scores' must have at least one entry", "none", "Check how the data were loaded or filtered"
        )
    f = as_vector(scores, n, "scores")
    return f, as_vector(viewpoint, n, "viewpoint"), as_weights(sample_weight, n, "sample_weight")


def _labels(y: Any, n: int) -> np.ndarray:
    """Return -1/+1; labels that already are may be of one class only, as happens in small folds."""
    labels = np.asarray(y)
    if labels.dtype.kind in "iuf" and labels.shape == (n,) and np.isin(labels, (-1, 1)).all():
        return labels.astype(float)
    return as_labels(y, n)[0]


def _rate_difference(f: np.ndarray, v: np.ndarray, w: np.ndarray, among: np.ndarray, condition: str) -> float:
    """Return the weighted rate of positive scores of viewpoint +1 minus that of -1, among some rows."""
    rates = {}
    for value, group in ((-1, among & (v <= 0)), (1, among & (v > 0))):
        total = w[group].sum()
        if total == 0:
            raise _UndefinedError(
                f"some row must have viewpoint {value:+d}{condition}",
                f"none among {len(f)} rows",
                "Use data where both groups are seen, or another measure",
            )
        rates[value] = w[group & (f > 0)].sum() / total
    return float(rates[1] - rates[-1])


def _normalized_information(a: np.ndarray, b: np.ndarray, w: np.ndarray) -> float:
    """Return I(A; B) / sqrt(H(A) H(B)) of two binary variables, 0 when either is constant."""
    joint = np.array([[w[(a == i) & (b == j)].sum() for j in (False, True)] for i in (False, True)]) / w.sum()
    rows, columns = joint.sum(axis=1), joint.sum(axis=0)
    seen = joint > 0
    information = float((joint[seen] * np.log(joint[seen] / np.outer(rows, columns)[seen])).sum())
    entropies = [float(-(p[p > 0] * np.log(p[p > 0])).sum()) for p in (rows, columns)]
    if min(entropies) <= 0:
        return 0.0
    # Rounding may step outside by an ulp; mutual information cannot.
    return float(np.clip(information / np.sqrt(entropies[0] * entropies[1]), 0.0, 1.0))


def _auc(labels: np.ndarray, f: np.ndarray, w: np.ndarray) -> float:
    """Return the weighted area under the ROC curve."""
    from sklearn.metrics import roc_auc_score

    if min(w[labels > 0].sum(), w[labels <= 0].sum()) == 0:
        raise _UndefinedError("AUC needs rows of both classes", "one class", "Use data where both are seen")
    return float(roc_auc_score(labels, f, sample_weight=w))
