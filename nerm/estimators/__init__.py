"""scikit-learn classifiers and regressors that are neutral to a viewpoint."""

from nerm.estimators.classifiers import NERMClassifier, NeutralSVC
from nerm.estimators.explanation import Explanation
from nerm.estimators.regressor import NeutralRegressor

__all__ = ["Explanation", "NERMClassifier", "NeutralRegressor", "NeutralSVC"]
