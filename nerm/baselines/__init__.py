"""The rivals of the neutral SVM: one published method a file, one face for all.

``fit(X, y, viewpoint=s)``, ``decision_function(X, viewpoint=s)``, ``predict(X, viewpoint=s)``; labels and
groups may be any two values, the larger one is the desired outcome and the favoured group. After fitting,
``objective_``, ``n_iter_`` and ``converged_`` say what was reached.
"""

from nerm.baselines.cv2nb import CV2NB as CV2NB
from nerm.baselines.eta_neutral import EtaNeutralLogisticRegression as EtaNeutralLogisticRegression
from nerm.baselines.fair_representations import LearningFairRepresentations as LearningFairRepresentations
from nerm.baselines.fairlearn_reduction import FairlearnReduction as FairlearnReduction
from nerm.baselines.fairlearn_thresholds import FairlearnThresholds as FairlearnThresholds
from nerm.baselines.group_thresholds import GroupThresholds as GroupThresholds
from nerm.baselines.group_thresholds import Unprocessed as Unprocessed
from nerm.baselines.naive_bayes import NominalNaiveBayes as NominalNaiveBayes
from nerm.baselines.prejudice_remover import PrejudiceRemover as PrejudiceRemover
from nerm.baselines.sklego_parity import SklegoDemographicParity as SklegoDemographicParity
from nerm.public import public_names

__all__ = public_names(globals())
