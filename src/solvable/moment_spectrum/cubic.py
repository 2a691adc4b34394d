r"""Law of a cubic first layer: population operator, noise, and overlaps at any number of samples.

At degree 3 lower chaoses and the crossings of the sixth are no small correction at any dimension that
can be measured: the population operator is taken as it is, from the tensors of the features and what
the mapped label keeps of each chaos, and the noise is free of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import NO_PREDICTION, Metrics
from solvable.moment_spectrum.bulk_edges import PredictedBulk
from solvable.moment_spectrum.cubic_forms import (
    CubicForms,
    CubicSample,
    joined,
    tensors_of,
)
from solvable.moment_spectrum.cubic_label import (
    KeptChaoses,
    fourth_parts,
    kept_chaoses,
    traced_operator,
)
from solvable.moment_spectrum.cubic_population import (
    CubicOperator,
    Spectrum,
    compressed,
    coupling_directions,
    fourth_chaos,
    isotropic_fourth,
    paired_fourth,
    second_chaos,
)
from solvable.moment_spectrum.sample_kernel import SampleKernel
from solvable.moment_spectrum.spike_law import SpikeLaw
from solvable.operators import HermiteFeatures, MomentOperator
from solvable.operators.base import MomentStatistics, statistics_of
from solvable.spectra.span_mass import Ranking, span_overlaps
from solvable.spectra.structured_spikes import (
    Background,
    SpikePrediction,
    WeightedSample,
    predict_spikes,
)


@dataclass(frozen=True)
class CubicBackground:
    """What the population operator holds beside the spikes, the same at every sample size."""

    atoms: np.ndarray
    profiles: np.ndarray

    def at(self, n_samples: float) -> Background:
        """Background at a sample size."""
        return Background(self.atoms, 0.0, np.zeros(len(self.profiles)), self.profiles)


@dataclass(frozen=True)
class SampledOperator:
    """What the learner's edges take from its moment operator, for resampled draws."""

    weights: np.ndarray  # T, (n,)
    input_norms: np.ndarray  # |x|^2, (n,)
    weighted_norms: np.ndarray  # T |F|^2 / D, (n,)
    lower_chaoses: Callable[[np.ndarray], np.ndarray] | None
    features: HermiteFeatures
    correction: str
    n_samples: float

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the operator."""
        return self.features.n_features, self.features.n_features

    @property
    def statistics(self) -> MomentStatistics:
        """Averages over the draws."""
        D = self.features.n_features
        norms = D * self.weighted_norms / np.where(self.weights == 0, 1, self.weights)
        return statistics_of(self.weights, norms, D)


@dataclass(frozen=True)
class CubicLaw(SpikeLaw):
    """Law whose overlaps are masses beyond the cut behind the directions asked for."""

    populations: tuple[Spectrum, ...] = ()  # spikes included, of several first layers
    draws: SampledOperator | None = None  # of the law, for the edges that the learner finds

    def drawn(self, n_samples: float, n_total: int) -> None:
        """Nothing: masses are smooth."""

    def shared(self, n_samples: float, n_total: int) -> None:
        """Nothing: the overlaps are of this kind."""

    def spikes(self, n_samples: float) -> SpikePrediction:
        """Edges, places, and overlaps with as many directions as features."""
        found = predict_spikes(**self._at(n_samples))
        p, rankings = self.heights.size, self._rankings(n_samples)
        overlaps = [
            span_overlaps(
                rankings,
                p,
                self.n_features + p,
                atoms=spectrum.atoms,
                shares=spectrum.shares,
                profiles=spectrum.profiles,
                weights=self.sample.clipped(n_samples).weights,
                probabilities=self.sample.probabilities,
                couplings=self.sample.couplings,
                aspect_ratio=n_samples / self.n_features,
            )
            for spectrum in self.populations
        ]
        return replace(found, squared_overlap=np.mean(overlaps, axis=0))

    def _rankings(self, n_samples: float) -> list[Ranking]:
        """Edges that the learner finds for some samples: the heaviest of each moves them."""
        whole = self.draws
        assert whole is not None
        D, rng = whole.shape[0], random_stream("cubic edges", whole.shape[0])
        rankings = []
        for _ in range(6):
            rows = rng.integers(whole.weights.size, size=min(int(n_samples), whole.weights.size))
            part = replace(
                whole,
                weights=whole.weights[rows],
                input_norms=whole.input_norms[rows],
                weighted_norms=whole.weighted_norms[rows],
                n_samples=n_samples,
            )
            null = PredictedBulk(cast("MomentOperator", part), rng).edges(
                np.empty(0), np.empty((D, 0))
            )
            lower, upper = null.bulk
            rankings.append(Ranking(lower - null.room, upper + null.room, null.centre))
        return rankings


def check_cubic(dimension: int, features: int) -> None:
    """Refuse where the operator is not known or too large."""
    if dimension > 40 or features > 64:
        raise InvalidParameter(
            f"dimension is {dimension} and features is {features} at degree 3, whose operator acts on "
            "tensors of d^3 entries for each feature; predicted up to dimension 40 and 64 features."
        )


def only_known(metrics: Metrics, samples: float, dimension: int, correction: str) -> Metrics:
    """Metrics of a cubic layer without the overlaps that are not known, and without the error."""
    # Single heavy samples decide which directions are returned: against simulation at dimensions 8 to
    # 17 features below half their threshold are within .03; from dimension 12 on corrected ones far
    # above it within .025 where no other is between, .05 to .08 too high where one is; all others miss
    # by .1 to .4, and the error by a fifth everywhere.
    overlaps = np.array(metrics["squared_overlap"], dtype=float)
    sizes = np.array(metrics["threshold_samples"], dtype=float)  # None becomes NaN
    lost = (overlaps < 0.05) & ~(samples > sizes / 2)
    found = (overlaps > 0.9) & (samples > 4 * sizes)
    settled = bool((lost | found).all()) and correction == "wick" and dimension >= 12
    known = lost | (found & settled)
    kept = dict(metrics)
    for name in ("squared_overlap", "threshold_samples", "eigenvalues", "population_floor"):
        values = metrics.get(name)
        if isinstance(values, list):
            pairs = zip(values, known, strict=True)
            kept[name] = [x if sure else None for x, sure in pairs]
    if metrics.get("bulk_edges") is not None and not known.all():
        kept["bulk_edges"] = [None, None]
    for name, value in metrics.items():
        mean = name.startswith(("mean_squared", "subspace")) or name == "detected_features"
        follows = name.startswith(("normalised_mse", "inner_", "crossing", "neighbour"))
        if follows or (mean and not known.all()):
            kept[name] = None
        if name == "last_layer_eigenvalues" and isinstance(value, list):
            kept[name] = [None] * len(value)
    unknown = (
        "" if known.all() else f", and nothing else for {(~known).sum()} of {known.size} features"
    )
    kept[NO_PREDICTION] = (
        f"at degree 3 and dimension {dimension} single heavy samples decide which directions are "
        f"returned: no error is predicted{unknown}. Allowed: samples below half a threshold, or "
        "correction=wick, dimension of 12 or more and samples above four thresholds of all features."
    )
    return kept


def draw_cubic(
    directions: np.ndarray,
    weights: np.ndarray,
    inputs: Callable[[int], np.ndarray],
    draws: int,
) -> CubicSample:
    """Draws of orthonormal directions; ``inputs(m)`` are m fresh rows, in blocks."""
    forms = CubicForms(directions, coupling_directions(directions, weights))
    sizes = [min(2_048, draws - start) for start in range(0, draws, 2_048)]
    return joined([forms(inputs(size)) for size in sizes])


def cubic_law(
    samples: Sequence[CubicSample],
    mapped: Sequence[np.ndarray],
    weights: np.ndarray,
    *,
    corrected: bool,
) -> CubicLaw:
    """Law of the step from draws of some first layers under the same label; T is `mapped`."""
    label = kept_chaoses(samples, mapped, weights, corrected=corrected)
    populations, backgrounds, heights = [], [], []
    for k, sample in enumerate(samples):
        operator = _population(sample, label, corrected=corrected)
        rng = random_stream("cubic population", k)
        whole = compressed(operator, sample.directions, rng)
        populations.append(whole.spectrum(np.diag(label.sixth)).grouped(3 * weights.size + 8, 80))
        if k == 0:
            backgrounds.append(whole.spectrum())
            own = np.sum(whole.features * (whole.matrix @ whole.features), axis=0)
            heights.append(label.sixth + own)
    atoms, profiles = backgrounds[0].equal_atoms(1_000)
    return CubicLaw(
        heights=heights[0],
        sample=_noise(samples, mapped, corrected=corrected),
        background=CubicBackground(atoms, profiles),
        n_features=max(len(samples[0].directions) - weights.size, 1),
        populations=tuple(populations),
        draws=_operator(samples, mapped, label, corrected=corrected),
    )


def _operators(
    sample: CubicSample, label: KeptChaoses, *, corrected: bool
) -> tuple[CubicOperator, CubicOperator]:
    """All of the operator that the label keeps but its spikes, and the lower chaoses of it."""
    tensors = tensors_of(sample.directions)
    beside = traced_operator(sample, label.sixth, label.traced)
    whole = replace(beside, tensors=tensors, sixth=label.sixth)
    if corrected:
        return whole, CubicOperator(tensors[:0], label.sixth[:0])
    d = tensors.shape[1]
    isotropic, paired, rest = label.fourth
    scale, H = fourth_parts(tensors, label.sixth)
    fourth = rest * fourth_chaos(tensors, label.sixth) + (paired - rest) * paired_fourth(H)
    fourth += (isotropic - rest * scale) * isotropic_fourth(d)
    trace, traced = label.second[0], 3 * label.sixth.sum() / d
    second = label.second[1] * second_chaos(tensors, label.sixth)
    second += (trace - label.second[1] * traced) * np.eye(d)
    lower = CubicOperator(tensors[:0], label.sixth[:0], fourth, second)
    return replace(whole, fourth=fourth, second=second), lower


def _population(
    sample: CubicSample, label: KeptChaoses, *, corrected: bool
) -> Callable[[np.ndarray], np.ndarray]:
    """The operator without its spikes, its couplings to the features as measured."""
    A = sample.directions
    operator, _ = _operators(sample, label, corrected=corrected)
    images = operator(A)
    inner = A.T @ images
    basis = np.linalg.qr(A)[0]
    outer = np.einsum("mp,mip->ip", label.couplings, sample.couplings)
    outer -= images - basis @ (basis.T @ images)
    change = np.zeros(len(inner)) if corrected else label.heights - label.sixth - np.diag(inner)

    def apply(vectors: np.ndarray) -> np.ndarray:
        along = A.T @ vectors
        return operator(vectors) + outer @ along + A @ (outer.T @ vectors + change[:, None] * along)

    return apply


def _operator(
    samples: Sequence[CubicSample],
    mapped: Sequence[np.ndarray],
    label: KeptChaoses,
    *,
    corrected: bool,
) -> SampledOperator:
    """Draws of all first layers as one operator; the lower chaoses are those of the first."""
    T = np.concatenate(mapped)
    norms = np.concatenate([sample.squared_norm for sample in samples])
    features = HermiteFeatures(3, tensors_of(samples[0].directions).shape[1])
    lower = None if corrected else _operators(samples[0], label, corrected=False)[1]
    return SampledOperator(
        weights=T,
        input_norms=np.concatenate([sample.squared_input_norm for sample in samples]),
        weighted_norms=T * norms / features.n_features,
        lower_chaoses=lower,
        features=features,
        correction="wick" if corrected else "none",
        n_samples=T.size,
    )


def _noise(
    samples: Sequence[CubicSample], mapped: Sequence[np.ndarray], *, corrected: bool
) -> WeightedSample:
    """Law of the weights and couplings on the complement of the features."""
    T = np.concatenate(mapped)
    if not corrected:
        kernel = SampleKernel.joined([sample.plain for sample in samples])
        return _grouped(T * kernel.rest, T[:, None] ** 2 * kernel.outer, 1.0, 200)
    kernel = SampleKernel.joined([sample.kernel for sample in samples])
    values = np.concatenate([sample.spectrum[0] for sample in samples])
    counts = samples[0].spectrum[1]
    if values.shape[1] < 5:
        raise InvalidParameter(
            "the law of corrected operators of degree 3 needs three inputs; allowed: dimension from 3, "
            "another degree, or correction='none'."
        )
    # w = T kappa / (D - p) for each eigenvalue kappa of the kernel, scaled to what it has outside
    whole = values**2 @ counts
    scale = T * kernel.rest / np.sqrt(whole)
    laws = [
        _grouped(
            scale * values[:, k],
            (T * values[:, k])[:, None] ** 2 * kernel.outer / whole[:, None],
            counts[k],
            160 if k < 2 else 60,
        )
        for k in range(5)  # the sixth eigenvalue, -1, is that of nearly all directions, and small
    ]
    weights, chances, couplings = (
        np.concatenate([getattr(law, name) for law in laws])
        for name in ("weights", "probabilities", "couplings")
    )
    return WeightedSample(weights, chances, couplings)


def _grouped(
    weights: np.ndarray, couplings: np.ndarray, count: float, groups: int
) -> WeightedSample:
    """Law of few atoms for weights that occur `count` times a sample, the largest one by one."""
    order = np.argsort(weights)
    ordered = weights[order]
    # Groups hold the same sum of |w|, and keep their mean square: narrow where weights are large.
    reached = np.cumsum(np.abs(ordered))
    places = np.searchsorted(reached, np.linspace(0, reached[-1], groups - 2)[:-1])
    starts = np.unique(np.concatenate([[0, 1], places, [weights.size - 1]]))
    sizes = np.diff(np.append(starts, weights.size))
    means, squares = (np.add.reduceat(ordered**k, starts) / sizes for k in (1, 2))
    return WeightedSample(
        np.sign(means) * np.sqrt(squares),
        count * sizes / weights.size,
        np.add.reduceat(couplings[order], starts, axis=0) / sizes[:, None],
    )
