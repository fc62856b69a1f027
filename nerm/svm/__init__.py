"""The neutral SVM written out on its own: two QPs, a reference SMO and the subgradient method.

This package checks the rest of nerm, so it shares no code with it but the errors. Arguments are in the
paper's sum form. Certificates are in the package's mean form: values in sum form are n times as large.
"""

from nerm.svm.data import Result
from nerm.svm.qp import QP, QPSolution, dual_qp, primal_qp
from nerm.svm.smo import smo
from nerm.svm.subgradient import subgradient_method

__all__ = ["QP", "QPSolution", "Result", "dual_qp", "primal_qp", "smo", "subgradient_method"]
