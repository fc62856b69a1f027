"""Published methods to compare the neutral SVM with, all with one interface.

The methods are ``fit(X, y, viewpoint=s)``, ``decision_function(X, viewpoint=s)`` and
``predict(X, viewpoint=s)``. Labels y and groups s may be any two values; the larger label is the desired
outcome, and the larger group is the favoured group. The methods for a real y are in
`nerm.baselines.regression`. After fitting, ``objective_`` is the final objective,
``n_iter_`` the number of iterations, and ``converged_`` says whether the method converged.
"""

from nerm.baselines.adapters import FairlearnReduction, FairlearnThresholds
from nerm.baselines.eta_neutral import EtaNeutralLogisticRegression
from nerm.baselines.fair_representations import LearningFairRepresentations
from nerm.baselines.group_thresholds import GroupThresholds, Unprocessed
from nerm.baselines.naive_bayes import CV2NB, NominalNaiveBayes
from nerm.baselines.prejudice_remover import PrejudiceRemover
from nerm.baselines.regression import BoundedGroupLoss, FairRidge, ResidualisedRidge, WassersteinBarycentre

__all__ = [
    "CV2NB", "BoundedGroupLoss", "EtaNeutralLogisticRegression", "FairRidge", "FairlearnReduction",
    "FairlearnThresholds", "GroupThresholds", "LearningFairRepresentations", "NominalNaiveBayes",
    "PrejudiceRemover", "ResidualisedRidge", "Unprocessed",
    "WassersteinBarycentre",
]  # fmt: skip
