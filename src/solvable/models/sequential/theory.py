"""Predicted overlaps, thresholds, spectrum and errors of sequential feature recovery."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter
from solvable.models.sequential.errors import Spectrum, layer_errors
from solvable.models.sequential.target import HierarchicalTarget
from solvable.moment_spectrum.degree_two_background import QuadraticBackground
from solvable.moment_spectrum.moments import FiniteSizeMoments, finite_size_moments
from solvable.moment_spectrum.operator_draws import InterpolatedSpikes, OperatorDraws
from solvable.moment_spectrum.spike_law import check_range
from solvable.spectra._edge_ensemble import MOST


@dataclass(frozen=True)
class SequentialPrediction:
    r"""Prediction for p features, at one sample size or, with a leading axis, at m sample sizes."""

    samples: np.ndarray
    """Sample size :math:`n`; shape () or (m,)."""
    squared_overlap: np.ndarray
    """Squared overlap :math:`c_i^2` of each true feature with the span of the p learned directions,
    overlap by chance included; shape (p,) or (m, p)."""
    recovered: np.ndarray
    """True for a feature whose eigenvalue is outside the bulk in the limit of many features; shape (p,)
    or (m, p)."""
    threshold_samples: np.ndarray
    """Threshold :math:`n_i` of each feature; infinite for a feature that stays inside the bulk at every
    n; shape (p,)."""
    eigenvalues: np.ndarray
    """Eigenvalue of each feature; the edge of the bulk for a feature inside it; shape (p,) or (m,
    p)."""
    bulk_edges: np.ndarray
    """Lower and upper edge of the bulk; shape (2,) or (m, 2)."""
    noise_scale: np.ndarray
    r"""Noise scale :math:`s=\sqrt{D\tau_2/n}`; the half-width of the bulk is 2s; shape () or (m,)."""
    normalised_mse: np.ndarray
    r"""Error of a second layer fitted by least squares on :math:`\min(\max(n,4000),20000)` fresh
    samples, followed by a readout if the label has one; shape () or (m,)."""
    normalised_mse_tail_only: np.ndarray
    """Error of a learner that knows the recovered features exactly; a lower bound on the error; shape
    () or (m,)."""
    normalised_mse_in_sample: np.ndarray
    """Error of a second layer made of the eigenvalues, which are biased upwards; shape () or (m,)."""
    normalised_mse_shrinkage: np.ndarray
    r"""Error of a second layer made of eigenvalues with modulus shrunk to
    :math:`\sqrt{(\hat\lambda^2-4s^2)_+}`; shape () or (m,)."""
    population_floor: np.ndarray
    """Squared overlap that each feature loses at infinite n to the population bulk; shape (p,)."""


@dataclass(frozen=True)
class _GivenWeights(HierarchicalTarget):
    """Target with Gaussian features and given weights."""

    given: tuple[float, ...] = ()

    @cached_property
    def weights(self) -> np.ndarray:
        return np.array(self.given)


def predict_sequential(
    *, weights: np.ndarray, n_features_total: int, samples: float | np.ndarray
) -> SequentialPrediction:
    r"""Predict overlaps, thresholds, spectrum and errors of sequential feature recovery.

    For the target :math:`y=\frac1{\sqrt2}\sum_i\lambda_i(h_i^2-1)` of Gaussian features and the moment
    matrix :math:`\frac1n\sum_\mu y_\mu(F_\mu F_\mu^\top-I)`, by the resolvent formula of
    :func:`~solvable.spectra.predict_spikes`. For :math:`n/D\gtrsim30` the formula becomes

    .. math:: c_i^2=\frac{(\nu_i-1)_+}{\nu_i+4\lambda_i^2},\quad \nu_i=2\lambda_i^2\frac nD,
        \qquad \mathrm{NMSE}=1-\sum_i\lambda_i^2c_i^4.

    The system `sequential-recovery` adds true Hermite features, label maps and readouts.
    derivations/sequential (5) to (16); arXiv:2605.14567, Equation 2.10 and Theorem 3.1, with constants.

    Parameters
    ----------
    weights : array of shape (p,)
        Weights :math:`\lambda_i`, not 0; rescaled to :math:`\sum_i\lambda_i^2=1`.
    n_features_total : int
        Total number :math:`D` of features, at least 2p.
    samples : float or array of shape (m,)
        Sample size :math:`n`, at least p.

    Returns
    -------
    SequentialPrediction
        Arrays with a leading axis if ``samples`` has one.

    Examples
    --------
    >>> prediction = predict_sequential(
    ...     weights=np.arange(1, 17) ** -1.0, n_features_total=465, samples=[64 * 465, 256 * 465]
    ... )
    >>> prediction.normalised_mse.round(1), prediction.recovered.sum(axis=1)
    (array([0.2, 0.1]), array([ 6, 16]))
    """
    check_positive(n_features_total=n_features_total)
    strengths = np.asarray(weights, dtype=np.float64)
    usable = strengths.ndim == 1 and strengths.size > 0
    if not usable or not np.isfinite(strengths).all() or not strengths.all():
        raise InvalidParameter(
            f"weights have shape {strengths.shape}; allowed: shape (p,), all finite and nonzero."
        )
    check_range(np.inf, strengths.size, n_features_total)
    target = _GivenWeights(
        dimension=n_features_total,
        degree=1,
        features=strengths.size,
        inputs="gaussian",
        given=tuple((strengths / np.linalg.norm(strengths)).tolist()),
    )
    return predict_from(finite_size_moments([target]), samples)


def predict_from(moments: FiniteSizeMoments, samples: float | np.ndarray) -> SequentialPrediction:
    """Predict all quantities of a target with given moments."""
    sizes = np.atleast_1d(np.asarray(samples, dtype=np.float64))
    if sizes.ndim != 1 or not (np.isfinite(sizes).all() and (sizes > 0).all()):
        raise InvalidParameter(f"samples is {samples}; allowed: numbers above 0, shape () or (m,).")
    check_range(float(sizes.min()), moments.law.heights.size, moments.n_features)
    spectrum = _spectrum(moments, sizes)
    errors = layer_errors(moments, spectrum, sizes)
    if moments.smaller is not None:
        spectrum, errors = _next_order(moments, spectrum, errors, sizes)
    overlap, floor = spectrum.overlap, spectrum.floor
    if moments.mixing is not None:
        # The squared overlap of a direction a_j is sum_k <a_j, b_k>² c_k², where the basis vectors b_k
        # have squared overlaps c_k²   (sequential 18).
        overlap, floor = overlap @ moments.mixing, floor @ moments.mixing
    first = 0 if np.ndim(samples) == 0 else slice(None)
    return SequentialPrediction(
        samples=sizes[first],
        squared_overlap=overlap[first],
        recovered=spectrum.recovered[first],
        threshold_samples=spectrum.thresholds,
        eigenvalues=spectrum.places[first],
        bulk_edges=spectrum.edges[first],
        noise_scale=spectrum.noise_scale[first],
        normalised_mse=errors["least-squares"][first],
        normalised_mse_tail_only=errors["tail-only"][first],
        normalised_mse_in_sample=errors["in-sample"][first],
        normalised_mse_shrinkage=errors["shrinkage"][first],
        population_floor=floor,
    )


def _next_order(
    moments: FiniteSizeMoments, spectrum: Spectrum, errors: dict[str, np.ndarray], sizes: np.ndarray
) -> tuple[Spectrum, dict[str, np.ndarray]]:
    """Correct the formula by its difference from operators drawn in a smaller dimension."""
    # The formula treats the contraction {B, .} as freely independent of the noise. In fact the noise is a
    # tensor symmetric in four indices and is larger where B is larger, an effect of relative order 1/d.
    assert moments.smaller is not None
    small, reach = moments.smaller.moments, moments.smaller.reach
    background = small.law.background
    if not isinstance(background, OperatorDraws):
        return spectrum, errors
    same = sizes * small.n_features / moments.n_features
    drawn, law = _spectrum(small, same), _spectrum(small, same, background.law)
    ours, theirs = (layer_errors(small, one, same) for one in (drawn, law))
    # Only gains are transferred. A feature with a loss is close to the bulk in the small dimension; there
    # orders above the first decide, and they are negligible in dimension d.
    gain = np.maximum(drawn.overlap - law.overlap, 0.0)
    overlap = np.clip(spectrum.overlap + reach * gain, 0, 1)
    changes = {name: 1 + reach * (ours[name] / theirs[name] - 1) for name in errors}
    changes["tail-only"] = np.ones(sizes.size)
    return (
        replace(spectrum, overlap=overlap),
        {name: error * changes[name] for name, error in errors.items()},
    )


def _spectrum(
    moments: FiniteSizeMoments, samples: np.ndarray, background: QuadraticBackground | None = None
) -> Spectrum:
    """Spectrum by the resolvent formula, with a given background or the background in the moments."""
    law = moments.law if background is None else replace(moments.law, background=background)
    D = moments.n_features
    spikes = [law.spikes(float(n)) for n in samples]
    drawn = [law.drawn(float(n), D, at) for n, at in zip(samples, spikes, strict=True)]
    operators = [at for at in spikes if isinstance(at, InterpolatedSpikes)]
    # With many features the learner fits squares alone, and the directions are too many to draw.
    undrawn = any(draws is None for draws in drawn) and not operators
    many = law.heights.size > MOST and undrawn
    # Squared overlaps are c_i² = -L' / (-L' + R_i')   (sequential 6), which becomes
    # (nu - tau_2)_+ / ((nu - tau_2)_+ + tau_2h) for n >> D   (sequential 8) and
    # 1 - (D/n) (1 / (2 lambda_i²) + 2) far above threshold   (sequential 9; arXiv:2605.14567, Theorem
    # 3.1). The eigenvalues are theta + s² / theta   (sequential 10).
    overlap, places = [], []
    for n, at, draws in zip(samples, spikes, drawn, strict=True):
        crowded = law.crowded(float(n), D, draws)
        overlap.append(at.squared_overlap if crowded is None else crowded)
        places.append(at.eigenvalues if draws is None else draws.eigenvalues)
    return Spectrum(
        overlap=np.array(overlap),
        recovered=samples[:, None] > law.thresholds,
        thresholds=law.thresholds,
        places=np.array(places),
        edges=np.array([at.bulk_edges for at in spikes]),
        # noise scale s² = D tau_2 / n   (sequential 4; arXiv:2605.14567, Equation 2.9)
        noise_scale=np.sqrt(law.noise * law.n_features / samples),
        floor=law.floor,
        drawn=tuple(drawn),
        own=np.array([law.alone(float(n), D) for n in samples]) if many else None,
        operators=operators,
    )
