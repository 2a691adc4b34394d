"""Matrix-free, chunked linear operators built from data."""

from solvable.operators.base import MomentStatistics
from solvable.operators.features import FeatureMap, HermiteFeatures
from solvable.operators.labels import LabelMap, apply_label_map, standardise
from solvable.operators.moment import MomentOperator
from solvable.operators.shards import ShardSum

__all__ = [
    "FeatureMap",
    "HermiteFeatures",
    "LabelMap",
    "MomentOperator",
    "MomentStatistics",
    "ShardSum",
    "apply_label_map",
    "standardise",
]
