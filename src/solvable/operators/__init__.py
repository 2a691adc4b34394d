"""Matrix-free, chunked linear operators built from data."""

from solvable.operators.activations import ACTIVATIONS, dual_kernel, kernel_diagonal
from solvable.operators.base import Correction, MomentStatistics, SymmetricOperator
from solvable.operators.eigen import Eigenpairs, leading_eigenpairs
from solvable.operators.feature_map import FeatureMap
from solvable.operators.features import HermiteFeatures
from solvable.operators.kernel_factor import KernelFactor, factorise_kernel
from solvable.operators.label_moments import LabelMoments
from solvable.operators.labels import LabelMap, apply_label_map, standardise
from solvable.operators.lift import RandomLift, average_pool, patches
from solvable.operators.modulus import ModulusPairs, block_krylov, dense_by_modulus
from solvable.operators.moment import MomentOperator
from solvable.operators.routes import Route, choose_route
from solvable.operators.shards import ShardSum
from solvable.operators.signals import ClassSignals, MomentSignals, SampleSignals

__all__ = [
    "ACTIVATIONS",
    "ClassSignals",
    "Correction",
    "Eigenpairs",
    "FeatureMap",
    "HermiteFeatures",
    "KernelFactor",
    "LabelMap",
    "LabelMoments",
    "ModulusPairs",
    "MomentOperator",
    "MomentSignals",
    "MomentStatistics",
    "RandomLift",
    "Route",
    "SampleSignals",
    "ShardSum",
    "SymmetricOperator",
    "apply_label_map",
    "average_pool",
    "block_krylov",
    "choose_route",
    "dense_by_modulus",
    "dual_kernel",
    "factorise_kernel",
    "kernel_diagonal",
    "leading_eigenpairs",
    "patches",
    "standardise",
]
