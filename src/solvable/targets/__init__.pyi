from solvable.models.compositional.target import CompositionalTarget as CompositionalTarget
from solvable.models.lofi.subspace_channel import SubspaceChannel as SubspaceChannel
from solvable.models.lofi.target import CHANNELS as CHANNELS
from solvable.models.lofi.target import GaussianChannel as GaussianChannel
from solvable.models.lofi.target import label_weights as label_weights
from solvable.models.multi_index.target import MultiIndexTarget as MultiIndexTarget
from solvable.models.sequential.target import HierarchicalTarget as HierarchicalTarget
from solvable.models.sequential.target import random_signs as random_signs
from solvable.moment_spectrum.quadratic_forms import degree_two_energy as degree_two_energy
from solvable.moment_spectrum.quadratic_forms import (
    quadratic_index_variance as quadratic_index_variance,
)
from solvable.moment_spectrum.quadratic_forms import weighted_square as weighted_square
from solvable.teachers.base import LatentTarget as LatentTarget
from solvable.teachers.random_features import ReluFeatures as ReluFeatures
from solvable.teachers.random_features import relu_covariance as relu_covariance
from solvable.teachers.readouts import Readout as Readout
from solvable.teachers.readouts import resolve_readout as resolve_readout
