"""The neutral SVM as explicit quadratic programmes, and the paper's own algorithms, corrected."""

from __future__ import annotations

from nerm.svm.result import NeutralSVM
from nerm.svm.smo import smo

__all__ = ["NeutralSVM", "smo"]
