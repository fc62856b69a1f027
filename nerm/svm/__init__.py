"""Reference implementations of the neutral SVM: two QPs, SMO, subgradients.

The tests compare the rest of nerm with this package, so it shares only the error classes with the rest.
Arguments are in the paper's sum form (sums over the n rows). Certificates are in mean form: multiply their
values by n to get the sum form.
"""

from nerm.svm.data import Result
from nerm.svm.qp import QP, QPSolution, dual_qp, primal_qp
from nerm.svm.smo import smo
from nerm.svm.subgradient import subgradient_method

__all__ = ["QP", "QPSolution", "Result", "dual_qp", "primal_qp", "smo", "subgradient_method"]
