# The public names of nerm, once: type checkers and editors read this file, and nerm itself when it is imported.
# Losses, surrogates and regularizers are not listed: each class that nerm.atoms finds is a name of nerm, a new one too.
from collections.abc import Callable
from typing import Any

from nerm import atoms as atoms
from nerm import baselines as baselines
from nerm import bounds as bounds
from nerm import chunks as chunks
from nerm import datasets as datasets
from nerm import estimators as estimators
from nerm import experiments as experiments
from nerm import kernels as kernels
from nerm import metrics as metrics
from nerm import plots as plots
from nerm import signs as signs
from nerm import solvers as solvers
from nerm import svm as svm
from nerm import tables as tables
from nerm import testing as testing
from nerm import viewpoint as viewpoint
from nerm import weights as weights
from nerm.atoms import MarginFunction as MarginFunction
from nerm.atoms import Regularizer as Regularizer
from nerm.atoms import dc_function as dc_function
from nerm.atoms import margin_function as margin_function
from nerm.atoms.custom_regularizer import regularizer as regularizer
from nerm.certify.certificate import Certificate as Certificate
from nerm.certify.multipliers import Multipliers as Multipliers
from nerm.certify.solution import Solution as Solution
from nerm.certify.solution import Status as Status
from nerm.chunks.source import Chunks as Chunks
from nerm.errors import InvalidInputError as InvalidInputError
from nerm.errors import MissingPackageError as MissingPackageError
from nerm.errors import NearlyConstantWarning as NearlyConstantWarning
from nerm.errors import NermError as NermError
from nerm.errors import NoPromiseError as NoPromiseError
from nerm.errors import NotNeutralError as NotNeutralError
from nerm.errors import NotSolvedError as NotSolvedError
from nerm.errors import UnknownNameError as UnknownNameError
from nerm.errors import UnsupportedProblemError as UnsupportedProblemError
from nerm.estimators import NERMClassifier as NERMClassifier
from nerm.estimators import NeutralSVC as NeutralSVC
from nerm.estimators.sharing import sharing as sharing
from nerm.io import load as load
from nerm.model.algebra import Objective as Objective
from nerm.model.constraints import Coefficients as Coefficients
from nerm.model.objective import Neutrality as Neutrality
from nerm.model.objective import Risk as Risk
from nerm.model.objective import equalized_odds as equalized_odds
from nerm.model.problem import Problem as Problem
from nerm.neutralize import Neutralized as Neutralized

__version__: str
__all__: list[str]

__getattr__: Callable[[str], Any]
