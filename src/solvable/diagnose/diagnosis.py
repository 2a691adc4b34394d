"""What a diagnosis holds: numbers with intervals, one row per matrix, all rows of a file."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np

from solvable.diagnose.bulk_fit import BulkFit
from solvable.fitting.power_tail import TailFit
from solvable.plots.displayed import Shown

NOT_FITTED = "not fitted"

# p-value below which the best law is refuted: the phase stays the likeliest, but nothing is read
# off a bulk that is none.
REFUTED = 0.02


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def of(cls, value: float, error: float, unit: float, *, least: float = -math.inf) -> Estimate:
        """A number with a standard error, in a unit; its interval ends at the least value."""
        reach = 1.959964 * error
        return cls(value * unit, max(value - reach, least) * unit, (value + reach) * unit)


@dataclass(frozen=True)
class Feature:
    """A signal behind an outlier."""

    observed: float  # singular value, or eigenvalue of a symmetric matrix, as it is in the file
    strength: Estimate  # de-biased: what it would be without noise and shrinkage
    squared_overlap: float  # of the vector in the file with that of the signal; on the shorter side
    long_overlap: float | None = None  # the same on the longer side; None for symmetric matrices


@dataclass(frozen=True)
class Exponent:
    """Power laws of the spectrum and of the signals behind it."""

    # alpha of the density lambda^(-alpha) of squared singular values, or of the eigenvalues of a
    # symmetric matrix; None where refused.
    spectrum: Estimate | None = None
    spectrum_p_value: float | None = None  # goodness of fit: a power law is refuted below 0.1
    lognormal_p_value: float | None = None  # against a log-normal: that is better below 0.05
    bulk_p_value: float | None = None  # of bulk and spikes as the cause of the tail: out below 0.05
    strengths: Estimate | None = None  # gamma of de-biased strengths s_i ~ i^(-gamma)
    strengths_p_value: float | None = None  # goodness of fit of that law
    n_tail: int = 0  # values behind either
    n_strengths: int = 0


@dataclass(frozen=True)
class Rival:
    """A law fitted to the same values as others."""

    name: str  # "power law", "log-normal", "bulk and spikes", or the name of a phase
    log_likelihood: float  # of all values, in nats
    p_value: float | None = None  # goodness of fit by parametric bootstrap, where one was made
    n_parameters: int = 0  # each costs half the logarithm of the number of values


@dataclass(frozen=True)
class Advice:
    """Squared norm that a cut at the edge of the bulk keeps, and the predicted error of the matrix."""

    # Errors are Frobenius distances of the matrix, as an estimate, from the signals behind it. They are
    # not the loss of the network.

    kept: int  # singular values beyond the bulk
    kept_share: float  # their share of the squared Frobenius norm
    cut: float  # where to cut: the edge of the bulk with its margin, in the unit of the file
    matrix_error: float  # of the matrix as it is
    matrix_error_cut: float  # with the values below the cut set to zero
    matrix_error_denoised: float  # with each value at its best size, in the directions of the file
    matrix_error_lowered: float | None = None  # with all values lowered by a threshold at the edge
    text: str = ""  # one sentence for a reader


@dataclass(frozen=True)
class Suggestion:
    """Whether a cut at the edge of the bulk is worth a trial on held-out data."""

    suggested: bool
    # Why not, in a word: "embedding", "fused" (a fused projection), "edge" (there is none), "nothing"
    # (stands out), "norm" (less than half of the squared norm would be left), "lead" (below 10
    # nats) or "change" (since the initial weights, by the same rules); empty if suggested.
    reason: str = ""
    text: str = ""  # the reason as a clause


@dataclass(frozen=True)
class ErrorParts:
    """Predicted squared Frobenius distance to the signals, in parts (``docs/spectral-law.md``)."""

    noise: float  # bulk that the matrix keeps: overfitting
    shrinkage: float  # wrong size of the features, sum_k (y_k - s_k)²
    rotation: float  # wrong direction of the features, 2 sum_k s_k y_k (1 - o_k)
    # Squared signals below the threshold, from the fitted power law of the strengths; None where
    # there is none, as a few weak signals leave no trace in a spectrum.
    undetected: float | None
    norm: float  # squared Frobenius norm of the matrix, to compare with


@dataclass(frozen=True, eq=False)
class Curve:
    """Fitted law for drawing; its integral and the atom are the share of the values in the law."""

    x: np.ndarray  # (m,): places in the unit of the values
    density: np.ndarray  # (m,)
    atom: float = 0.0  # share of the values that the law puts at zero


@dataclass(frozen=True)
class Comparison:
    """A matrix against its initial weights."""

    phase: str  # of the initial weights
    n_outliers: int | None = None  # of the initial weights; None where they have no bulk
    noise: float | None = None  # of the initial weights
    relative_change: float | None = (
        None  # Frobenius norm of the change over that of the initial weights
    )
    difference: MatrixDiagnosis | None = None  # diagnosis of the change W - W0
    text: str = ""  # one sentence for a reader


@dataclass(frozen=True)
class Control:
    """A matrix against itself under random signs."""

    tested: int  # values beyond the bulk, or the largest alone where there is none
    confirmed: int  # of them larger than any under random signs
    text: str  # one sentence for a reader


@dataclass(frozen=True, eq=False)
class MatrixDiagnosis:
    """One row of a diagnosis.

    Parameters
    ----------
    name : str
        Of the array in the file.
    shape : tuple of int
        As stored.
    dtype : str
        As stored.
    phase : str
        One of the six (``"random-like"``, ``"bleeding-out"``, ``"bulk+spikes"``, ``"bulk-decay"``,
        ``"heavy-tailed"``, ``"rank-collapse"``) or ``"not fitted"``.
    reason : str
        Why this phase, or why nothing was fitted.
    bulk : BulkFit or None
        Noise, shrinkage and outliers.
    tail : TailFit or None
        Of the squared singular values or the eigenvalues.
    zeros : int
        Values that are zero to the precision of the file.
    notes : tuple of str
        What else was refused or changed, in words.
    runner_up : str
        Phase of the second best law; empty if there is none.
    log_likelihood_ratio : float or None
        Best law of the phase over the runner-up's in nats, each less its penalty.
    phase_p_value : float or None
        Probability of a fit as bad as the one of the phase's law if it is true (parametric
        bootstrap); None where none was made.
    noise, shrinkage : Estimate or None
        Of the generative law, in the unit of the file.
    features : tuple of Feature
        Outliers, strongest first.
    exponent : Exponent or None
        Of spectrum and strengths.
    rivals : tuple of Rival
        Explanations of the tail, fitted to the same values.
    candidates : tuple of Rival
        Laws of the phases, best first.
    advice : Advice or None
        What a cut at the edge of the bulk would keep; None where there is no bulk.
    suggestion : Suggestion or None
        Whether such a cut is worth a trial; None where nothing was fitted.
    layout : str
        Of a fused projection: how it was split, or why it was not.
    errors : ErrorParts or None
        Where the predicted distance to the signals comes from.
    law : Curve or None
        Fitted law of ``values``.
    values : ndarray or None
        Singular values, or eigenvalues if ``symmetric``, ascending, in the unit of the file.
    edges : tuple of float or None
        Of the bulk among ``values``.
    symmetric : bool
        Whether ``values`` are eigenvalues.
    initial : Comparison or None
        Against the initial weights.
    control : Control or None
        Against the matrix itself under random signs; None where nothing was to be confirmed.
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
    runner_up: str = ""
    log_likelihood_ratio: float | None = None
    phase_p_value: float | None = None
    noise: Estimate | None = None
    shrinkage: Estimate | None = None
    features: tuple[Feature, ...] = ()
    exponent: Exponent | None = None
    rivals: tuple[Rival, ...] = ()
    candidates: tuple[Rival, ...] = ()
    advice: Advice | None = None
    suggestion: Suggestion | None = None
    layout: str = ""
    errors: ErrorParts | None = None
    law: Curve | None = None
    values: np.ndarray | None = None
    edges: tuple[float, float] | None = None
    symmetric: bool = False
    initial: Comparison | None = None
    control: Control | None = None

    @property
    def fitted(self) -> bool:
        """Whether a law was fitted."""
        return self.phase != NOT_FITTED

    def to_dict(self, *, arrays: bool = True) -> dict[str, Any]:
        """Everything as plain lists, numbers and words, for JSON."""
        row: dict[str, Any] = _plain(self)
        if not arrays:
            row["values"] = row["law"] = None
        return row


# Phases of the product of query and key of an attention head.
RANDOM = "random-like"  # a product of independent factors, with nothing beyond it
SPIKES = "product+spikes"  # directions beyond a product of independent factors, which is the rest
THRESHOLDED = "thresholded"  # zeros, a bulk of noise that a penalty has cut, and what is beyond it
LOW_RANK = "low rank"  # so many zeros that nothing is left to tell noise from learned directions
SPREAD = "spread"  # no product of independent factors, though no direction stands out
NO_LAW = "no law"  # directions stand out, and the rest is no product of independent factors either


@dataclass(frozen=True, eq=False)
class HeadDiagnosis:
    """The product query^T key of one attention head as one matrix."""

    name: str  # what the names of query and key share, and the number of the head
    pair: str  # what the names share
    query: str  # names of the arrays in the file
    key: str
    head: int | None  # from 0; None where the arrays have not been taken apart
    shape: tuple[int, ...]  # inputs of the query, inputs of the key
    width: int  # dimensions of the head: the product has no larger rank
    phase: str  # one of the six above, or "not fitted"
    reason: str  # why this phase, or why nothing was fitted
    rank: int = 0  # singular values that are not zero
    # those beyond what noise reaches; at least so many where no law fits the rest
    learned: int | None = None
    # root of the longer side times the standard deviation of an entry
    noise: Estimate | None = None
    threshold: Estimate | None = None  # by which a penalty has lowered all values
    # strongest first; empty where no law is left to give strengths
    features: tuple[Feature, ...] = ()
    # Tr(M M) / Tr(M^T M): 1 for symmetric, -1 for antisymmetric; None where the sides differ
    symmetry: float | None = None
    tied: bool = False  # whether the product is symmetric with no eigenvalue below zero
    p_value: float | None = None  # of the law of what is not learned
    # of what is not learned, in standard deviations of that of independent factors
    rest_symmetry: float | None = None
    values: np.ndarray | None = None  # singular values that are not zero, descending
    expected: np.ndarray | None = None  # by the law, without anything learned, descending

    @property
    def fitted(self) -> bool:
        """Whether the head was looked at."""
        return self.phase != NOT_FITTED

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists, numbers and words, for JSON."""
        row: dict[str, Any] = _plain(self)
        return row


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


@dataclass(frozen=True, repr=False)
class Diagnosed(Shown, view="solvable.diagnose.view"):
    """The diagnoses of a file; ``figure(name)`` draws the spectrum of the matrix of that name."""

    name: str  # the file
    rows: tuple[MatrixDiagnosis, ...]  # one per array looked at, in the order of the file
    seed: int = 0  # of the bootstraps
    initial: str = ""  # file of the initial weights; empty if there is none
    seconds: float = 0.0  # what it took
    n_arrays: int = 0  # arrays in the file: more than rows if it was interrupted
    versions: Mapping[str, str] = field(default_factory=dict)  # of what it was computed with
    heads: tuple[HeadDiagnosis, ...] = ()  # attention heads, query^T key of each
    attention: tuple[str, ...] = ()  # what of the attention was not looked at, and why
    interrupted: bool = False  # by the user

    @property
    def complete(self) -> bool:
        """Whether every array and every head was looked at."""
        return len(self.rows) >= self.n_arrays and not self.interrupted

    @property
    def vectors(self) -> tuple[MatrixDiagnosis, ...]:
        """Vectors and single numbers, which have no spectrum."""
        return tuple(row for row in self.rows if _is_vector(row))

    @property
    def matrices(self) -> tuple[MatrixDiagnosis, ...]:
        """All others; where the file has them by the alphabet, 10 comes after 9."""
        rows = [row for row in self.rows if not _is_vector(row)]
        names = [row.name for row in rows]
        return tuple(sorted(rows, key=_natural) if names == sorted(names) else rows)

    @property
    def fitted(self) -> tuple[MatrixDiagnosis, ...]:
        """Matrices that have a phase."""
        return tuple(row for row in self.matrices if row.fitted)

    @property
    def refused(self) -> tuple[MatrixDiagnosis, ...]:
        """Matrices that have none."""
        return tuple(row for row in self.matrices if not row.fitted)


def _natural(row: MatrixDiagnosis) -> list[tuple[int, str]]:
    """Key by which numbers are compared as numbers."""
    return [
        (int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", row.name)
    ]


def _is_vector(row: MatrixDiagnosis) -> bool:
    # What is damaged has no known shape, and is listed.
    return len(row.shape) == 1 or (row.shape == () and row.dtype != "unknown")
