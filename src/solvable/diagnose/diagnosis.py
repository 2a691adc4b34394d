"""Results of a diagnosis: estimates with intervals, one row per matrix, one per attention head."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from solvable.diagnose.bulk_fit import BulkFit
from solvable.diagnose.outliers import Outliers
from solvable.fitting.power_tail import TailFit

NOT_FITTED = "not fitted"
STRUCTURED = "structured"  # phase of matrices of a few frequencies, to which no law is fitted

# Reason for arrays that are skipped because they hold indices, masks or packed weights.
INTEGERS = "integers or truth values: indices, masks or packed weights."

ADAPTER = "a low-rank adapter of rank"  # beginning of the reason of an adapter without faults

# p-value below which a law of noise is refuted; then it gives no features.
REFUTED = 0.02


@dataclass(frozen=True)
class Estimate:
    """Estimated number with its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, error: float, unit: float, *, least: float = -math.inf) -> Estimate:
        """Make an estimate from a value, its error and a unit; the interval is cut at ``least``."""
        reach = 1.959964 * error
        return cls(value * unit, max(value - reach, least) * unit, (value + reach) * unit)


@dataclass(frozen=True)
class Feature:
    """Learned feature: the signal behind an outlier."""

    observed: float  # singular value, or eigenvalue of a symmetric matrix, in the file
    strength: Estimate  # de-biased strength: the value without noise and shrinkage
    squared_overlap: float  # squared overlap of the file's and the signal's vector, shorter side
    long_overlap: float | None = (
        None  # the same overlap on the longer side; None for symmetric matrices
    )


@dataclass(frozen=True)
class Exponent:
    """Power law of the spectrum."""

    # alpha of the density lambda^(-alpha) of squared singular values, or of the eigenvalues of a
    # symmetric matrix; None if refuted.
    spectrum: Estimate | None = None
    spectrum_p_value: float | None = None  # p-value of the power law, which is refuted below 0.1
    lognormal_p_value: float | None = (
        None  # p-value against a log-normal, which fits better if the p-value is below 0.05
    )
    n_tail: int = 0  # number of values to which the exponent was fitted


@dataclass(frozen=True, eq=False)
class Curve:
    """Fitted density for drawing; integral plus atom is the share of values that the law describes."""

    x: np.ndarray  # (m,): grid of values
    density: np.ndarray  # (m,): density on the grid
    atom: float = 0.0  # probability of the value zero


@dataclass(frozen=True)
class Comparison:
    """Comparison of a matrix with its initial weights."""

    phase: str  # phase of the initial weights
    directions: int | None = None  # lower bound on the directions of the initial weights
    relative_change: float | None = (
        None  # Frobenius norm of the change, divided by the norm of the initial weights
    )
    multiple: float = (
        1.0  # factor c of the initial weights that the change is compared with, W - c W0
    )
    difference: MatrixDiagnosis | None = None  # diagnosis of the change
    rank: int | None = None  # fewest directions that hold 95 % of the squared norm of the change
    text: str = ""  # result in one sentence


@dataclass(frozen=True)
class Control:
    """Comparison of a matrix with itself under random signs."""

    tested: int  # values beyond the bulk, or only the largest value if there is no bulk
    confirmed: int  # number of tested values that are larger than all values under random signs
    text: str  # result in one sentence


@dataclass(frozen=True, eq=False)
class MatrixDiagnosis:
    """Diagnosis of one matrix: one row of the table.

    Parameters
    ----------
    name : str
        Name of the array in the file.
    shape : tuple of int
        Shape in the file.
    dtype : str
        Type of the entries in the file.
    phase : str
        One of the seven phases (``"random-like"``, ``"bleeding-out"``, ``"bulk+spikes"``,
        ``"bulk-decay"``, ``"heavy-tailed"``, ``"rank-collapse"``, ``"structured"``) or ``"not fitted"``.
    reason : str
        Reason for this phase, or for the missing fit.
    bulk : BulkFit or None
        Noise, shrinkage and outliers.
    tail : TailFit or None
        Power-law tail of the squared singular values or the eigenvalues.
    zeros : int
        Number of values that are zero to the precision of the file.
    notes : tuple of str
        Other fits that were refused, and changes made to the array, in words.
    phase_p_value : float or None
        Goodness of fit of the law of the phase, by parametric bootstrap; None without a bootstrap.
    noise, shrinkage : Estimate or None
        Noise scale and threshold of the law, in the unit of the file.
    features : tuple of Feature
        Outliers, strongest first.
    exponent : Exponent or None
        Power-law exponent of the spectrum.
    layout : str
        Layout by which a fused projection was split, or the reason why it was not.
    law : Curve or None
        Fitted law of ``values``.
    values : ndarray or None
        Singular values, or eigenvalues if ``symmetric``, ascending, in the unit of the file.
    edges : tuple of float or None
        Edges of the bulk among ``values``.
    symmetric : bool
        Whether ``values`` are eigenvalues.
    initial : Comparison or None
        Comparison with the initial weights.
    control : Control or None
        Comparison with the matrix under random signs; None if no value had to be confirmed.
    norm, largest : float or None
        Frobenius norm and largest singular value, also of matrices without a fit; None if an entry is
        not finite.
    stable_rank : float or None
        Squared norm divided by the squared largest singular value; None for a zero matrix.
    directions : int or None
        Lower bound on the number of directions: values above the largest of the same matrix under
        random signs, one too many in at most 5 % of matrices of noise. None if it was not counted.
    outliers : tuple of Outliers
        Entries, rows, columns, mean and zero rows that were taken out before anything was fitted.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    phase: str
    reason: str
    bulk: BulkFit | None = None
    tail: TailFit | None = None
    zeros: int = 0
    notes: tuple[str, ...] = ()
    phase_p_value: float | None = None
    noise: Estimate | None = None
    shrinkage: Estimate | None = None
    features: tuple[Feature, ...] = ()
    exponent: Exponent | None = None
    layout: str = ""
    law: Curve | None = None
    values: np.ndarray | None = None
    edges: tuple[float, float] | None = None
    symmetric: bool = False
    initial: Comparison | None = None
    control: Control | None = None
    norm: float | None = None
    largest: float | None = None
    stable_rank: float | None = None
    directions: int | None = None
    outliers: tuple[Outliers, ...] = ()

    @property
    def fitted(self) -> bool:
        """True if a law was fitted."""
        return self.phase != NOT_FITTED

    def to_dict(self, *, arrays: bool = True) -> dict[str, Any]:
        """Return all fields as plain lists, numbers and words, for JSON."""
        row: dict[str, Any] = _plain(self)
        if not arrays:
            row["values"] = row["law"] = None
        return row


# Phases of the product of query and key of an attention head.
RANDOM = "random-like"  # a product of independent factors without learned directions
SPIKES = "product+spikes"  # a product of independent factors plus learned directions
THRESHOLDED = "thresholded"  # noise cut by a penalty, with zeros, plus learned directions
LOW_RANK = "low rank"  # so many zeros that noise and learned directions cannot be separated
SPREAD = "spread"  # query and key are dependent, but no direction is above the controls
NO_LAW = "no law"  # directions above the controls, but the other values follow neither model


@dataclass(frozen=True, eq=False)
class HeadDiagnosis:
    """Diagnosis of the product query^T key of one attention head, as one matrix."""

    name: str  # common part of the query's and the key's names, and the number of the head
    pair: str  # common part of the query's and the key's names
    query: str  # names of the arrays in the file
    key: str
    head: int | None  # number of the head, from 0; None if the arrays were not split into heads
    shape: tuple[int, ...]  # number of inputs of the query and of the key
    width: int  # number of dimensions of the head, the largest possible rank of the product
    phase: str  # one of the six phases above, or "not fitted"
    reason: str  # reason for this phase, or for the missing fit
    rank: int = 0  # number of singular values that are not zero
    # number of learned directions; a lower bound if no law fits the other values
    learned: int | None = None
    # noise scale: square root of the longer side times the standard deviation of a noise entry
    noise: Estimate | None = None
    threshold: Estimate | None = None  # threshold by which a penalty has lowered all values
    # learned directions, strongest first; empty if no fitted law gives strengths
    features: tuple[Feature, ...] = ()
    # Tr(M M) / Tr(M^T M): 1 for symmetric, -1 for antisymmetric M; None if M is not square
    symmetry: float | None = None
    tied: bool = False  # True if the product is symmetric with no eigenvalue below zero
    p_value: float | None = None  # goodness of fit for the values that are not learned
    # symmetry of the values that are not learned, in standard deviations of independent factors
    rest_symmetry: float | None = None
    values: np.ndarray | None = None  # singular values that are not zero, descending
    expected: np.ndarray | None = None  # values expected if nothing was learned, descending

    @property
    def fitted(self) -> bool:
        """True if the head was analysed."""
        return self.phase != NOT_FITTED

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain lists, numbers and words, for JSON."""
        row: dict[str, Any] = _plain(self)
        return row


@dataclass(frozen=True)
class Measurement:
    """Numbers of one matrix at one checkpoint."""

    matrix: str
    shape: tuple[int, ...]
    directions: int | None = None  # lower bound
    norm: float | None = None
    largest: float | None = None
    stable_rank: float | None = None
    dead_rows: int = 0
    reason: str = ""  # why numbers are missing


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return [_plain(entry) for entry in value.tolist()]
    if isinstance(value, tuple | list):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
