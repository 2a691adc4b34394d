"""What a diagnosis of a weight matrix holds: one row, its numbers with intervals, its curve."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from solvable.diagnose.fit import BulkFit
from solvable.diagnose.tail import TailFit

NOT_FITTED = "not fitted"

PHASES = (
    "random-like",
    "bleeding-out",
    "bulk+spikes",
    "bulk-decay",
    "heavy-tailed",
    "rank-collapse",
)
"""The six phases, in the order in which a spectrum leaves noise."""


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval.

    Parameters
    ----------
    value, low, high : float
        Estimate and ends of the interval.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Feature:
    r"""A signal behind an outlier.

    Parameters
    ----------
    observed : float
        Singular value, or eigenvalue of a symmetric matrix, as it is in the file.
    strength : Estimate
        De-biased: what it would be without noise and shrinkage.
    squared_overlap : float
        Of the vector in the file with that of the signal; the shorter side of a rectangular matrix.
    long_overlap : float or None
        The same on the longer side; None for symmetric matrices.
    """

    observed: float
    strength: Estimate
    squared_overlap: float
    long_overlap: float | None = None


@dataclass(frozen=True)
class Exponent:
    r"""Power laws of the spectrum and of the signals behind it.

    Parameters
    ----------
    spectrum : Estimate or None
        :math:`\alpha` of the density :math:`\lambda^{-\alpha}` of squared singular values, or of
        the eigenvalues of a symmetric matrix; None where refused.
    spectrum_p_value : float or None
        Goodness of fit: a power law is refuted below 0.1.
    lognormal_p_value : float or None
        Of the power law against a log-normal: below 0.05 the log-normal is better.
    bulk_p_value : float or None
        Probability that bulk and spikes of this size are as well described by a power law: below
        0.05 they are ruled out as the cause of the tail.
    strengths : Estimate or None
        :math:`\gamma` of the de-biased strengths :math:`s_i\propto i^{-\gamma}`; None where
        refused.
    strengths_p_value : float or None
        Goodness of fit of that law.
    n_tail, n_strengths : int
        Values behind either.
    """

    spectrum: Estimate | None = None
    spectrum_p_value: float | None = None
    lognormal_p_value: float | None = None
    bulk_p_value: float | None = None
    strengths: Estimate | None = None
    strengths_p_value: float | None = None
    n_tail: int = 0
    n_strengths: int = 0


@dataclass(frozen=True)
class Rival:
    """A law fitted to the same values as others.

    Parameters
    ----------
    name : str
        ``"power law"``, ``"log-normal"``, ``"bulk and spikes"``, or the name of a phase.
    log_likelihood : float
        Of all values, in nats.
    p_value : float or None
        Goodness of fit by parametric bootstrap; None where none was made.
    n_parameters : int
        Fitted numbers, each of which costs half the logarithm of the number of values.
    """

    name: str
    log_likelihood: float
    p_value: float | None = None
    n_parameters: int = 0


@dataclass(frozen=True)
class Advice:
    """What pruning or denoising would keep, and the error it is predicted to leave.

    Parameters
    ----------
    kept : int
        Singular values beyond the bulk.
    kept_share : float
        Their share of the squared Frobenius norm.
    cut : float
        Where to cut: the edge of the bulk with its margin, in the unit of the file.
    error : float
        Predicted Frobenius distance of the matrix from the signals found behind it.
    pruned_error : float
        The same after the values below the cut are set to zero.
    denoised_error : float
        The same after every value is replaced by the best one (rotationally invariant shrinkage).
    edge_error : float or None
        The same after the threshold is moved up to the edge (all values lowered by it); None
        without shrinkage.
    text : str
        One sentence for a reader.
    """

    kept: int
    kept_share: float
    cut: float
    error: float
    pruned_error: float
    denoised_error: float
    edge_error: float | None = None
    text: str = ""

    @property
    def reduction(self) -> float:
        """Share of the predicted error that denoising takes away."""
        return 1 - self.denoised_error / self.error if self.error > 0 else 0.0


@dataclass(frozen=True)
class ErrorParts:
    r"""Predicted squared Frobenius distance to the signals, in parts; see ``docs/spectral-law.md``.

    Parameters
    ----------
    noise : float
        Bulk that the matrix keeps: overfitting.
    shrinkage : float
        Wrong size of the features, :math:`\sum_k(y_k-s_k)^2`.
    rotation : float
        Wrong direction of the features, :math:`2\sum_ks_ky_k(1-o_k)`.
    undetected : float or None
        Squared signals below the threshold, from the fitted power law of the strengths; None where
        there is none, as a few weak signals leave no trace in a spectrum.
    norm : float
        Squared Frobenius norm of the matrix, to compare with.
    """

    noise: float
    shrinkage: float
    rotation: float
    undetected: float | None
    norm: float


@dataclass(frozen=True, eq=False)
class Curve:
    """Fitted law for drawing; its integral and the atom are the share of the values in the law.

    Parameters
    ----------
    x, density : ndarray of shape (m,)
        Places in the unit of ``values`` and density per unit.
    atom : float
        Share of the values that the law puts at zero.
    """

    x: np.ndarray
    density: np.ndarray
    atom: float = 0.0


@dataclass(frozen=True)
class Comparison:
    """A matrix against its initial weights, or against itself with its entries permuted.

    Parameters
    ----------
    control : str
        ``"initial weights"`` or ``"permuted entries"``.
    phase : str
        Of the control.
    n_outliers : int or None
        Outliers of the control; None where it has no bulk.
    noise : float or None
        Noise of the control.
    relative_change : float or None
        Frobenius norm of the change over that of the initial weights.
    difference : MatrixDiagnosis or None
        Diagnosis of the change W - W0.
    text : str
        One sentence for a reader.
    """

    control: str
    phase: str
    n_outliers: int | None = None
    noise: float | None = None
    relative_change: float | None = None
    difference: MatrixDiagnosis | None = None
    text: str = ""


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
        One of ``PHASES`` or ``"not fitted"``.
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
        What to prune or denoise.
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
        Against the initial weights or permuted entries.
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
    errors: ErrorParts | None = None
    law: Curve | None = None
    values: np.ndarray | None = None
    edges: tuple[float, float] | None = None
    symmetric: bool = False
    initial: Comparison | None = None

    @property
    def fitted(self) -> bool:
        """Whether a law was fitted."""
        return self.phase != NOT_FITTED

    def to_dict(self, *, arrays: bool = True) -> dict[str, Any]:
        """Everything as plain lists, numbers and words, for JSON.

        Parameters
        ----------
        arrays : bool
            Whether to keep the values and the curve.

        Returns
        -------
        dict
            By the names of the fields; a number that is not finite becomes None.

        Examples
        --------
        >>> row = MatrixDiagnosis("w", (40, 50), "F32", "random-like", "no outlier.")
        >>> row.to_dict()["shape"]
        [40, 50]
        """
        found: dict[str, Any] = _plain(self)
        if not arrays:
            found["values"] = found["law"] = None
        return found


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, np.ndarray):
        return [_plain(one) for one in value.tolist()]
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
