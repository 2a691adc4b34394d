"""Face: what a system of one's own is made from."""

from solvable.frame.claims import Claim, Finding, NotTestable, Status, Verdict
from solvable.frame.points import Metrics, Point
from solvable.frame.system import Parameters, Preset, Reference, System
from solvable.plots.figure import Figure, Marker, Series

__all__ = [
    "Claim",
    "Figure",
    "Finding",
    "Marker",
    "Metrics",
    "NotTestable",
    "Parameters",
    "Point",
    "Preset",
    "Reference",
    "Series",
    "Status",
    "System",
    "Verdict",
]
