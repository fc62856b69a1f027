"""scikit-learn classifiers that are neutral to a viewpoint."""

from nerm.estimators.explanation import Explanation
from nerm.estimators.nerm_classifier import NERMClassifier
from nerm.estimators.neutral_svc import NeutralSVC

__all__ = ["Explanation", "NERMClassifier", "NeutralSVC"]
