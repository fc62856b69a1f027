"""The neutral SVM as explicit quadratic programmes, and the paper's own algorithms, corrected.

Arguments are in the paper's sum form, solutions in the package's mean form: values in sum form are n times
theirs.
"""

from nerm.svm.dual import dual_qp
from nerm.svm.primal import primal_qp
from nerm.svm.qp import QP, QPSolution
from nerm.svm.smo import smo
from nerm.svm.subgradient import subgradient_method

__all__ = ["QP", "QPSolution", "dual_qp", "primal_qp", "smo", "subgradient_method"]
