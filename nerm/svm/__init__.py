"""The neutral SVM as explicit quadratic programmes, and the paper's own algorithms, corrected."""

from __future__ import annotations

from nerm.svm.dual import dual_qp
from nerm.svm.primal import primal_qp
from nerm.svm.qp import QP, QPSolution
from nerm.svm.result import NeutralSVM
from nerm.svm.smo import smo
from nerm.svm.subgradient import subgradient_method

__all__ = ["QP", "NeutralSVM", "QPSolution", "dual_qp", "primal_qp", "smo", "subgradient_method"]
