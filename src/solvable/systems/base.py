"""Public names for writing a system: System, Parameters, claims and panels."""

from solvable.frame.agreement import Agreement, Cell, overlap_scatter
from solvable.frame.checks import check_system
from solvable.frame.claims import Claim, Finding, NotTestable, Status, Verdict
from solvable.frame.conditions import (
    above,
    at_least,
    at_most,
    below,
    between,
    inside,
    not_,
    one_of,
)
from solvable.frame.curves import Axis, Curve
from solvable.frame.estimates import Contrast, Estimate, Lead, Slope
from solvable.frame.panels import Panel
from solvable.frame.parameters import Limit, Parameters, Size, memory
from solvable.frame.points import Metrics, Point
from solvable.frame.references import Reference
from solvable.frame.spectrum import Law, Spectrum
from solvable.frame.system import Preset, System
from solvable.frame.traces import Trace
from solvable.plots.figure import Figure, Marker, Series

__all__ = [
    "Agreement",
    "Axis",
    "Cell",
    "Claim",
    "Contrast",
    "Curve",
    "Estimate",
    "Figure",
    "Finding",
    "Law",
    "Lead",
    "Limit",
    "Marker",
    "Metrics",
    "NotTestable",
    "Panel",
    "Parameters",
    "Point",
    "Preset",
    "Reference",
    "Series",
    "Size",
    "Slope",
    "Spectrum",
    "Status",
    "System",
    "Trace",
    "Verdict",
    "above",
    "at_least",
    "at_most",
    "below",
    "between",
    "check_system",
    "inside",
    "memory",
    "not_",
    "one_of",
    "overlap_scatter",
]
