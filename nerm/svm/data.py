"""The neutral SVM's data, checked once, and the values of its primal objective.

Everything in `nerm.svm` is in the paper's *sum form*::

    P(f) = sum_i s_i (1 - y_i f_i)_+  +  (lambda/2) ||w||^2  +  eta max(C^+, C^-),
    C^{+-} = sum_i u_i (1 -+ v_i f_i)_+ ,        f_i = w.x_i + b.

The *published* variant is what the printed dual really solves: eta max(C^+, C^-) becomes
`eta sum_i u_i (1 + |v_i f_i|)`, a pure shrinkage of the scores (docs/errata.md, erratum 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm import kernels
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.kernels import Kernel, Precomputed, check_gram
from nerm.validation import Matrix, as_labels, as_matrix, as_nonnegative, as_positive, as_vector, as_weights

VARIANTS = ("exact", "published")
# Below this a viewpoint can only matter for scores beyond 1e100; 1 / v would overflow long before.
NEGLIGIBLE_VIEWPOINT = 1e-100


@dataclass(frozen=True, eq=False)
class NeutralData:
    """Rows, labels y in {-1, +1}, viewpoint v, weights s (risk) and u (neutrality), lambda, eta, kernel."""

    X: Matrix
    y: np.ndarray
    viewpoint: np.ndarray
    sample_weight: np.ndarray
    neutrality_weight: np.ndarray
    lam: float
    eta: float
    kernel: Kernel
    variant: str = "exact"

    @property
    def n(self) -> int:
        """The number of samples."""
        return len(self.y)

    def risk(self, scores: np.ndarray) -> float:
        """Return sum_i s_i (1 - y_i f_i)_+."""
        return float(self.sample_weight @ np.maximum(0.0, 1.0 - self.y * scores))

    def neutrality(self, scores: np.ndarray) -> tuple[float, float]:
        """Return (C^+, C^-)."""
        vf = self.viewpoint * scores
        u = self.neutrality_weight
        return float(u @ np.maximum(0.0, 1.0 - vf)), float(u @ np.maximum(0.0, 1.0 + vf))

    def penalty(self, scores: np.ndarray) -> float:
        """Return eta max(C^+, C^-), or `eta sum u (1 + |v f|)` for the published variant."""
        if self.eta == 0.0:
            return 0.0
        if self.variant == "published":
            return self.eta * float(self.neutrality_weight @ (1.0 + np.abs(self.viewpoint * scores)))
        return self.eta * max(self.neutrality(scores))

    def primal(self, scores: np.ndarray, norm2: float) -> float:
        """Return P for scores f (with their intercept) and ||w||^2."""
        return self.risk(scores) + 0.5 * self.lam * norm2 + self.penalty(scores)


def validated(
    X: Any,
    y: Any,
    viewpoint: Any,
    lam: Any,
    eta: Any,
    *,
    kernel: Any = "linear",
    variant: str = "exact",
    sample_weight: Any = None,
    neutrality_weight: Any = None,
) -> NeutralData:
    """Check every input of the neutral SVM and bring it to one form."""
    if variant not in VARIANTS:
        raise UnknownNameError("'variant'", variant, VARIANTS)
    resolved = kernels.resolve(kernel)
    if isinstance(resolved, Precomputed):
        X = check_gram(X.toarray() if sp.issparse(X) else as_matrix(X, "gram"))
    else:
        X = as_matrix(X)
    n = X.shape[0]
    labels, _ = as_labels(y, n)
    lam = as_positive(lam, "lam", "lambda is 1 / C; use for instance 1.0")
    eta = as_nonnegative(eta, "eta", "Use 0 for the plain SVM, or a positive number")
    if viewpoint is None and eta > 0:
        raise InvalidInputError(
            "'viewpoint' must be given when eta is positive",
            "None",
            "Pass one number for each row, or set eta to 0",
        )
    v = np.zeros(n) if viewpoint is None else as_vector(viewpoint, n, "viewpoint")
    return NeutralData(
        X=X,
        y=labels,
        viewpoint=np.where(np.abs(v) < NEGLIGIBLE_VIEWPOINT, 0.0, v),
        sample_weight=as_weights(sample_weight, n, "sample_weight"),
        neutrality_weight=as_weights(neutrality_weight, n, "neutrality_weight"),
        lam=lam,
        eta=eta,
        kernel=resolved.fitted(X),
        variant=variant,
    )
