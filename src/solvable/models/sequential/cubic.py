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
from solvable.models.sequential.bulk import PredictedBulk
from solvable.models.sequential.cubic_forms import (
    CubicForms,
    CubicSample,
    crossed_contractions,
    double_traces,
    joined,
    single_traces,
    tensors_of,
    traceless,
)
from solvable.models.sequential.cubic_population import (
    CubicOperator,
    Spectrum,
    compressed,
    coupling_directions,
    fourth_chaos,
    isotropic_fourth,
    paired_fourth,
    second_chaos,
)
from solvable.models.sequential.spike_law import SpikeLaw
from solvable.operators import HermiteFeatures, MomentOperator
from solvable.operators.base import MomentStatistics, statistics_of
from solvable.spectra.span_mass import Ranking, span_overlaps
from solvable.spectra.spikes import Background, SpikePrediction, WeightedSample, predict_spikes


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
    n_samples: int

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
            rankings.append(Ranking(*null.bulk, null.centre))
        return rankings


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


@dataclass(frozen=True)
class _Label:
    """What the mapped label keeps of each chaos of the index, pooled over first layers."""

    sixth: np.ndarray  # c_i
    couplings: np.ndarray  # gamma, (3, p): of each of the coupling directions
    fourth: tuple[float, float, float]  # isotropic, paired, rest
    second: tuple[float, float]  # isotropic, rest
    traced: tuple[float, float]  # of the sixth beyond that of c: along sym(I I I) and sym(I I Z)
    heights: np.ndarray  # <A_i, P A_i>


def cubic_law(
    samples: Sequence[CubicSample],
    mapped: Sequence[np.ndarray],
    weights: np.ndarray,
    *,
    corrected: bool,
) -> CubicLaw:
    """Law of the step from draws of some first layers under the same label; T is `mapped`."""
    label = _label(samples, mapped, weights, corrected=corrected)
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


def _label(
    samples: Sequence[CubicSample],
    mapped: Sequence[np.ndarray],
    weights: np.ndarray,
    *,
    corrected: bool,
) -> _Label:
    T = np.concatenate(mapped)
    index = np.concatenate([(sample.latent**2 - 1) @ weights / np.sqrt(2) for sample in samples])

    def mean(name: str, exact: np.ndarray) -> np.ndarray:
        """E[T values], with the index as control variate, whose mean is known."""
        values = np.concatenate([np.asarray(getattr(sample, name)) for sample in samples])
        return _controlled(T, index, values, exact)

    R = np.mean([crossed_contractions(tensors_of(s.directions)) for s in samples], axis=0)
    heights = mean("sixth", R @ (np.sqrt(2) * weights))
    # What the sixth chaos has along the norm of x beside the features takes a share of the heights.
    sixth, traced = np.linalg.solve(R, heights), (0.0, 0.0)
    for _ in range(3):
        traced = _traced_sixth(samples, T, sixth)
        beside = [
            np.sum(s.directions * _traced_operator(s, sixth, traced)(s.directions), axis=0)
            for s in samples
        ]
        sixth = np.linalg.solve(R, heights - np.mean(beside, axis=0))
    V = np.stack([sample.couplings for sample in samples])  # (first layers, 3, D, p)
    gram = np.mean(np.einsum("kaip,kbip->kpab", V, V), axis=0)
    if corrected:
        kept = np.zeros((3, weights.size))
        kept[0] = mean("crossed_sixth", gram[:, 0, 0]) / np.maximum(gram[:, 0, 0], 1e-12)
        return _Label(sixth, kept, (0, 0, 0), (0, 0), traced, heights)
    crossed = np.stack(
        [
            _controlled(T, index, np.concatenate([s.crossed[m] for s in samples]), gram[:, m].sum(1))
            for m in range(3)
        ]
    )
    ridge = 1e-9 * np.trace(gram, axis1=1, axis2=2)[:, None, None] * np.eye(3)
    kept = np.linalg.solve(gram + ridge, crossed.T[:, :, None])[:, :, 0].T
    lower = np.concatenate([sample.fourth + sample.second for sample in samples])
    heights = heights + T @ lower / T.size
    fourth, second = _attenuations(samples, T, sixth)
    return _Label(sixth, kept, fourth, second, traced, heights)


def _controlled(
    T: np.ndarray, index: np.ndarray, values: np.ndarray, exact: np.ndarray
) -> np.ndarray:
    """E[T values] where that of the index is exact."""
    control, response = index[:, None] * values, T[:, None] * values
    centred = control - control.mean(axis=0)
    slope = np.sum(centred * response, axis=0) / np.maximum(np.sum(centred**2, axis=0), 1e-300)
    return np.asarray(response.mean(axis=0) - slope * (control.mean(axis=0) - exact))


def _attenuations(
    samples: Sequence[CubicSample], T: np.ndarray, sixth: np.ndarray
) -> tuple[tuple[float, float, float], tuple[float, float]]:
    """What the label keeps of each harmonic part of the fourth and of the second chaos."""
    columns: list[list[np.ndarray]] = [[], [], [], [], []]
    d = round(np.mean([tensors_of(sample.directions).shape[1] for sample in samples]))
    for sample in samples:
        s = sample.squared_input_norm
        scale, H = _fourth_parts(tensors_of(sample.directions), sixth)
        # Harmonic parts of I_4: sym(I I), sym(I H), and the rest; of I_2: I, and the rest.
        isotropic = s**2 - 2 * (d + 2) * s + d * (d + 2)
        paired = 6 * 18 / (d + 4) * (sample.traced @ sixth) * (s - d - 4)
        whole = sample.fourth @ sixth / 2
        trace = 3 * sixth.sum() / d
        columns[0].append(isotropic)
        columns[1].append(paired / 24)
        columns[2].append(whole - (scale * isotropic + paired) / 24)
        columns[3].append(s - d)
        columns[4].append((sample.second @ sixth - trace * (s - d)) / 2)
    parts = [np.concatenate(column) for column in columns]
    moments = [float(T @ part / T.size) for part in parts]
    # E[part^2] is known of the isotropic ones: 24 |sym(I I)|^2 and 2 |I|^2.
    powers = [float(part @ part / T.size) for part in parts]
    return (
        (24 * moments[0] / (8 * d * (d + 2)), moments[1] / powers[1], moments[2] / powers[2]),
        (moments[3] / d, moments[4] / powers[4]),
    )


def _traced_sixth(
    samples: Sequence[CubicSample], T: np.ndarray, sixth: np.ndarray
) -> tuple[float, float]:
    """Parts of tau_6 along sym(I I I) and sym(I I Z), Z of the index, beyond those of the features."""
    d = tensors_of(samples[0].directions).shape[1]
    s = np.concatenate([sample.squared_input_norm for sample in samples])
    form = np.concatenate([sample.twice_traced @ sixth for sample in samples])
    beyond = T - np.concatenate([sample.sixth @ sixth for sample in samples]) / 2
    # I_6 of both: s^3 - ... of mean square 48 d (d + 2) (d + 4), and the form times a square in s.
    isotropic = s**3 - 3 * (d + 4) * s**2 + 3 * (d + 2) * (d + 4) * s - d * (d + 2) * (d + 4)
    paired = form * (s**2 - 2 * (d + 6) * s + (d + 4) * (d + 6))
    return (
        15 * float(beyond @ isotropic / T.size) / (d * (d + 2) * (d + 4)),
        720 * float(beyond @ paired / max(paired @ paired, 1e-300)),
    )


def _traced_operator(
    sample: CubicSample, sixth: np.ndarray, traced: tuple[float, float]
) -> CubicOperator:
    tensors = tensors_of(sample.directions)
    Z = np.tensordot(sixth, traceless(double_traces(tensors)), axes=1)
    return CubicOperator(tensors[:0], sixth[:0], None, None, traced[0], traced[1] * Z)


def _fourth_parts(tensors: np.ndarray, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """Coefficient of sym(I I) in tau_4 and the traceless H of its part sym(I H)."""
    d = tensors.shape[1]
    traced = 18 * np.tensordot(weights, single_traces(tensors), axes=1)
    return 3 * float(np.trace(traced)) / (d * (d + 2)), 6 / (d + 4) * traceless(traced)


def _operators(
    sample: CubicSample, label: _Label, *, corrected: bool
) -> tuple[CubicOperator, CubicOperator]:
    """All of the operator that the label keeps but its spikes, and the lower chaoses of it."""
    tensors = tensors_of(sample.directions)
    beside = _traced_operator(sample, label.sixth, label.traced)
    whole = replace(beside, tensors=tensors, sixth=label.sixth)
    if corrected:
        return whole, CubicOperator(tensors[:0], label.sixth[:0])
    d = tensors.shape[1]
    isotropic, paired, rest = label.fourth
    scale, H = _fourth_parts(tensors, label.sixth)
    fourth = rest * fourth_chaos(tensors, label.sixth) + (paired - rest) * paired_fourth(H)
    fourth += (isotropic - rest * scale) * isotropic_fourth(d)
    trace, traced = label.second[0], 3 * label.sixth.sum() / d
    second = label.second[1] * second_chaos(tensors, label.sixth)
    second += (trace - label.second[1] * traced) * np.eye(d)
    lower = CubicOperator(tensors[:0], label.sixth[:0], fourth, second)
    return replace(whole, fourth=fourth, second=second), lower


def _population(
    sample: CubicSample, label: _Label, *, corrected: bool
) -> Callable[[np.ndarray], np.ndarray]:
    """The operator without its spikes, its couplings to the features as measured."""
    A = sample.directions
    operator, _ = _operators(sample, label, corrected=corrected)
    images = operator(A)
    inner = A.T @ images
    outer = np.einsum("mp,mip->ip", label.couplings, sample.couplings) - (images - A @ inner)
    change = np.zeros(len(inner)) if corrected else label.heights - label.sixth - np.diag(inner)

    def apply(vectors: np.ndarray) -> np.ndarray:
        along = A.T @ vectors
        return operator(vectors) + outer @ along + A @ (outer.T @ vectors + change[:, None] * along)

    return apply


def _operator(
    samples: Sequence[CubicSample],
    mapped: Sequence[np.ndarray],
    label: _Label,
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
    laws = []
    D, p = samples[0].directions.shape
    others = max(D - p, 1)
    T = np.concatenate(mapped)
    squares = np.concatenate([sample.latent for sample in samples]) ** 2
    if not corrected:
        norm = np.concatenate([sample.squared_norm for sample in samples])
        outside = np.maximum(norm - squares.sum(axis=1), 0)
        size = np.sqrt(np.maximum((outside - 2) * outside + others, 0)) / others
        couplings = (T**2 * outside)[:, None] * squares / others
        return _grouped(T * size, couplings, 1.0, 200)
    values, counts = samples[0].spectrum[0], samples[0].spectrum[1]
    values = np.concatenate([sample.spectrum[0] for sample in samples])
    sixth = np.concatenate([sample.sixth for sample in samples])
    images = np.concatenate([sample.images for sample in samples])
    # The features' own block, f_i f_j to leading order beside its diagonal, and their rows
    crossed = squares * (squares.sum(axis=1)[:, None] - squares)
    outer = np.maximum(images - sixth**2 - crossed, 0)
    whole = values**2 @ counts
    rest = np.maximum(whole - np.sum(2 * outer + sixth**2 + crossed, axis=1), 0)
    scale = T * np.sqrt(rest / whole) / others
    laws = [
        _grouped(
            scale * values[:, k],
            (T**2 * values[:, k] ** 2 / whole / others)[:, None] * outer,
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
    size, tail = weights.size, groups // 8
    inner = np.linspace(tail, size - tail, groups - 2 * tail, endpoint=False).astype(int)
    starts = np.unique(np.concatenate([np.arange(tail), inner, np.arange(size - tail, size)]))
    sizes = np.diff(np.append(starts, size))
    return WeightedSample(
        np.add.reduceat(weights[order], starts) / sizes,
        count * sizes / size,
        np.add.reduceat(couplings[order], starts, axis=0) / sizes[:, None],
    )
