"""Published methods to compare the neutral SVM with, all with one interface.

``fit(X, y, viewpoint=s)``, ``decision_function(X, viewpoint=s)``, ``predict(X, viewpoint=s)``; labels and
groups may be any two values, the larger one is the desired outcome and the favoured group. After fitting,
``objective_``, ``n_iter_`` and ``converged_`` say what was reached.
"""

from nerm.baselines.adapters import FairlearnReduction, FairlearnThresholds, SklegoDemographicParity
from nerm.baselines.eta_neutral import EtaNeutralLogisticRegression
from nerm.baselines.fair_representations import LearningFairRepresentations
from nerm.baselines.group_thresholds import GroupThresholds, Unprocessed
from nerm.baselines.naive_bayes import CV2NB, NominalNaiveBayes
from nerm.baselines.prejudice_remover import PrejudiceRemover

__all__ = [
    "CV2NB", "EtaNeutralLogisticRegression", "FairlearnReduction", "FairlearnThresholds", "GroupThresholds",
    "LearningFairRepresentations", "NominalNaiveBayes", "PrejudiceRemover", "SklegoDemographicParity",
    "Unprocessed",
]  # fmt: skip
