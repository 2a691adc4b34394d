"""Targets: distributions over (x, y) whose latent features are known."""

from solvable.targets.base import LatentTarget
from solvable.targets.channels import CHANNELS, GaussianChannel, label_weights
from solvable.targets.compositional import CompositionalTarget
from solvable.targets.hierarchical import HierarchicalTarget, random_signs
from solvable.targets.quadratic import QuadraticTarget
from solvable.targets.random_features import ReluFeatures, relu_covariance
from solvable.targets.readouts import Readout, resolve_readout
from solvable.targets.subspace_channel import SubspaceChannel
from solvable.targets.symmetric import (
    degree_two_energy,
    quadratic_index_variance,
    weighted_square,
)

__all__ = [
    "CHANNELS",
    "CompositionalTarget",
    "GaussianChannel",
    "HierarchicalTarget",
    "LatentTarget",
    "QuadraticTarget",
    "Readout",
    "ReluFeatures",
    "SubspaceChannel",
    "degree_two_energy",
    "label_weights",
    "quadratic_index_variance",
    "random_signs",
    "relu_covariance",
    "resolve_readout",
    "weighted_square",
]
