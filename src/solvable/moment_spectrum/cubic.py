r"""Spectrum of a first layer of degree 3 after the Wick correction: population operator and noise.

At degree 3 the population operator of Hermite degree 6 is as large as the spikes, in every dimension
that can be measured. The operator is computed from the tensors of the features and from the spike
heights of the features under the mapped label.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import NO_PREDICTION, Metrics, listed
from solvable.moment_spectrum.cubic_forms import (
    CubicSample,
    crossed_contractions,
    cubic_operator,
    tensors_of,
)
from solvable.moment_spectrum.sample_kernel import SampleKernel
from solvable.moment_spectrum.spike_law import SpikeLaw
from solvable.spectra.structured_spikes import Background, SpikePrediction, WeightedSample


@dataclass(frozen=True)
class CubicLaw(SpikeLaw):
    """Spike theory with several weights per sample, for which no matrices are drawn."""

    def drawn(self, n_samples: float, n_total: int, formula: SpikePrediction) -> None:
        """Return None, because no matrices are drawn at degree 3."""

    def shared(self, n_samples: float, n_total: int) -> None:
        """Return None, because no matrices are drawn at degree 3."""


@dataclass(frozen=True)
class _SameAtAllSizes:
    """Population background that does not depend on the number of samples."""

    background: Background

    def at(self, n_samples: float) -> Background:
        return self.background


def check_cubic(dimension: int, features: int, correction: str) -> None:
    """Raise an error if the cubic operator has no prediction or is too large to compute."""
    if correction == "none":
        raise InvalidParameter(
            "correction is 'none' at degree 3, where lower Hermite degrees are as large as the features; "
            "allowed for predictions: correction=wick."
        )
    if not 12 <= dimension <= 40 or features > 64:
        raise InvalidParameter(
            f"dimension is {dimension} and features is {features} at degree 3, where the operator acts "
            "on tensors of d³ entries; allowed for predictions: dimension 12 to 40 and at most 64 "
            "features."
        )


def only_known(metrics: Metrics, samples: float) -> Metrics:
    """Metrics of a cubic layer without the error and without unreliable overlaps."""
    # Single samples of large norm decide which directions are returned. In simulations at dimensions 12
    # to 20, predicted overlaps are within 0.03 for features below half their threshold, and for features
    # above three times their threshold if no other feature is in between. Other overlaps are off by up
    # to 0.2, and errors by up to a third. The noise has outliers from single samples, the population
    # operator has further terms if labels are mapped, and errors of directions are not isotropic.
    overlaps = np.array(metrics["squared_overlap"], dtype=float)
    sizes = np.array(metrics["threshold_samples"], dtype=float)  # converts None to NaN
    lost = (overlaps < 0.05) & ~(samples > sizes / 2)
    clear = (overlaps > 0.8) & (samples > 3 * sizes)
    known = lost | (clear & bool((lost | clear).all()))
    kept = dict(metrics)
    for name, value in metrics.items():
        if name in ("squared_overlap", "threshold_samples", "eigenvalues", "population_floor"):
            values = np.array(value, dtype=float)
            kept[name] = listed(np.where(known, values, np.nan))
        elif name == "bulk_edges" and not known.all():
            kept[name] = [None, None]
        elif name == "last_layer_eigenvalues":
            kept[name] = [None] * len(value)  # type: ignore[arg-type]
        mean = name.startswith(("mean_squared", "subspace")) or name == "detected_features"
        if name.startswith(("normalised_mse", "inner_", "crossing", "neighbour")) or (
            mean and not known.all()
        ):
            kept[name] = None
    others = f", nor anything for {(~known).sum()} of {known.size} features"
    kept[NO_PREDICTION] = (
        "at degree 3 single samples of large norm decide which directions are returned, so no error is "
        "predicted"
        f"{'' if known.all() else others}. Allowed: samples below half a threshold or above three "
        "thresholds of all features."
    )
    return kept


def cubic_law(samples: Sequence[CubicSample], mapped: Sequence[np.ndarray]) -> CubicLaw:
    """Spike theory of a cubic step from draws of several first layers, with `mapped` labels T."""
    T, first = np.concatenate(mapped), samples[0].directions
    D, p = first.shape
    # The spike heights are theta_i = E[T <A_i, K A_i>] = sum_j R_ij c_j.
    heights = T @ np.concatenate([sample.sixth for sample in samples]) / T.size
    R = np.mean([crossed_contractions(tensors_of(s.directions)) for s in samples], axis=0)
    rates = np.linalg.solve(R, heights)
    return CubicLaw(
        heights=heights,
        sample=_noise(samples, T),
        background=_SameAtAllSizes(_background(first, rates, 240)),
        n_features=D - p,
        room=2 / tensors_of(first).shape[1],
    )


def _background(directions: np.ndarray, rates: np.ndarray, size: int) -> Background:
    """Population spectrum without spikes, from a block Krylov space that starts at the features."""
    D, p = directions.shape
    operator, A = cubic_operator(tensors_of(directions), rates), directions
    probes = random_stream("cubic population").standard_normal((D, 2))
    basis = np.linalg.qr(np.concatenate([A, probes], axis=1))[0]
    images = operator(basis)
    width = basis.shape[1]
    while basis.shape[1] + width <= min(max(size, 4 * width), D):
        block = images[:, -width:]
        for _ in range(2):
            block = block - basis @ (basis.T @ block)
        block = np.linalg.qr(block)[0]
        basis = np.concatenate([basis, block], axis=1)
        images = np.concatenate([images, operator(block)], axis=1)
    matrix = basis.T @ images
    # The spikes are added elsewhere, so the heights are set to zero here.
    matrix[np.diag_indices(p)] = 0
    atoms, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    profiles = vectors[:p] ** 2
    rest = np.mean(vectors[p : p + 2] ** 2, axis=0)
    # The result has about a thousand equally likely atoms, at least one for each eigenvalue.
    copies = np.maximum(np.round(1_000 * (profiles.sum(axis=0) + (D - p) * rest) / D), 1)
    times = copies.astype(int)
    spread = np.repeat(profiles / copies, times, axis=1)
    return Background(np.repeat(atoms, times), 0.0, np.zeros(p), profiles=spread)


def _noise(samples: Sequence[CubicSample], T: np.ndarray) -> WeightedSample:
    """Distribution of the weights and couplings on the complement of the features."""
    kernel = SampleKernel.joined([sample.kernel for sample in samples])
    values = np.concatenate([sample.spectrum[0] for sample in samples])
    counts = samples[0].spectrum[1]
    # Each eigenvalue kappa of K gives a weight w = T kappa / (D - p), scaled to the norm on the
    # complement.
    whole = values**2 @ counts
    scale = T * kernel.rest / np.sqrt(whole)
    laws = [
        _grouped(
            scale * values[:, k],
            (T * values[:, k])[:, None] ** 2 * kernel.outer / whole[:, None],
            counts[k],
            160 if k < 2 else 60,
        )
        for k in range(
            5
        )  # The sixth eigenvalue of K, -1, has nearly all directions as eigenvectors and is negligible.
    ]
    weights, shares, couplings = (np.concatenate(column) for column in zip(*laws, strict=True))
    return WeightedSample(weights, shares, couplings)


def _grouped(
    weights: np.ndarray, couplings: np.ndarray, count: float, groups: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Group weights that occur `count` times per sample into few atoms; the extremes stay single."""
    order = np.argsort(weights)
    ordered = weights[order]
    # All groups have the same sum of |w|, so a group of large weights has few. A group becomes one atom
    # at the root mean square of its weights.
    reached = np.cumsum(np.abs(ordered))
    places = np.searchsorted(reached, np.linspace(0, reached[-1], groups - 2)[:-1])
    starts = np.unique(np.concatenate([[0, 1], places, [weights.size - 1]]))
    sizes = np.diff(np.append(starts, weights.size))
    means, squares = (np.add.reduceat(ordered**k, starts) / sizes for k in (1, 2))
    return (
        np.sign(means) * np.sqrt(squares),
        count * sizes / weights.size,
        np.add.reduceat(couplings[order], starts, axis=0) / sizes[:, None],
    )
