"""scikit-learn classifiers that are neutral to a viewpoint."""

from nerm.estimators.classifiers import NERMClassifier, NeutralSVC
from nerm.estimators.explanation import Explanation

__all__ = ["Explanation", "NERMClassifier", "NeutralSVC"]
