"""Matrix-free, chunked linear operators built from data."""

from solvable.operators.base import Correction, MomentStatistics, SymmetricOperator
from solvable.operators.eigen import Eigenpairs, leading_eigenpairs
from solvable.operators.feature_map import FeatureMap
from solvable.operators.features import HermiteFeatures
from solvable.operators.labels import LabelMap, apply_label_map, standardise
from solvable.operators.moment import MomentOperator
from solvable.operators.routes import Route, choose_route
from solvable.operators.shards import ShardSum

__all__ = [
    "Correction",
    "Eigenpairs",
    "FeatureMap",
    "HermiteFeatures",
    "LabelMap",
    "MomentOperator",
    "MomentStatistics",
    "Route",
    "ShardSum",
    "SymmetricOperator",
    "apply_label_map",
    "choose_route",
    "leading_eigenpairs",
    "standardise",
]
