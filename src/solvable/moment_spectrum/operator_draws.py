"""Spectra of random operators distributed as the moment operator of degree-2 features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from solvable.moment_spectrum.degree_two_background import QuadraticBackground
from solvable.moment_spectrum.draws import is_quadratic, rotated_form
from solvable.moment_spectrum.latent_draws import LatentDraws, random_features
from solvable.moment_spectrum.operator_noise import SampleNoise
from solvable.moment_spectrum.operator_population import Mean, Member, Population
from solvable.moment_spectrum.population_fit import (
    LARGEST_DRAWN,
    can_fit,
    fit_population,
    quadratic_forms,
)
from solvable.moment_spectrum.target_protocol import MomentTarget
from solvable.operators.labels import LabelMap
from solvable.spectra.sample_lattice import lattice_sizes
from solvable.spectra.structured_spikes import (
    Background,
    SpikePrediction,
    WeightedSample,
    predict_spikes,
)

REFERENCE = 40
"""Dimension in which the formula's error is computed, for use in larger dimensions."""

FORMS = 32
"""Number of first layers whose strengths are used in turn, for directions that are not orthogonal."""

Edges: TypeAlias = tuple[float, float]
"""Lower and upper edge of a bulk."""


@dataclass(frozen=True, kw_only=True)
class FixedDraws(LatentDraws):
    """Draws of one target, with the learned features of one drawn operator."""

    features: np.ndarray
    aligned: np.ndarray | None = None  # features rotated within their span towards the signal
    values: np.ndarray | None = None  # eigenvalues of the learned directions

    def spanning(self, features: np.ndarray) -> np.ndarray:
        """Return features of the same span, each as close as possible to one feature of the signal."""
        return features if self.aligned is None else self.aligned

    def learned(self, squared_overlap: np.ndarray) -> np.ndarray:
        """Return the drawn features; the given overlaps are not used."""
        return self.features


@dataclass(frozen=True)
class OperatorSpikes(SpikePrediction):
    """Spikes averaged over operators that are drawn at one sample size."""

    samples: int
    # pairs of draws, with and without correlation between noise and feature
    learned: tuple[tuple[FixedDraws, FixedDraws], ...]


@dataclass(frozen=True)
class InterpolatedSpikes(SpikePrediction):
    """Spikes interpolated between the sample sizes of a lattice, at which operators are drawn."""

    parts: tuple[tuple[float, OperatorSpikes], ...]  # weight and means of each size of the lattice


@dataclass(frozen=True)
class OperatorDraws:
    """Operators of random first layers, with noise distributed as that of finitely many samples."""

    mean: Mean
    target: MomentTarget  # one of the targets that have the first layers
    noise: SampleNoise
    contraction_noise: float  # n times the variance of the spectrum of the noise in B
    law: QuadraticBackground  # background if operator and noise are treated as free
    repeats: float = 1.0  # factor of the number of draws at each size of the lattice
    per_octave: int = 4  # sizes of the lattice between n and 2n
    known: dict[int, tuple[SpikePrediction, OperatorSpikes]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    @property
    def population(self) -> Population:
        """Random first layers in the target's dimension."""
        return self.noise.population

    @property
    def plain(self) -> bool:
        """Return True if the operators contain the contraction (no Wick correction)."""
        return self.population.plain

    def at(self, n_samples: float) -> Background:
        """Background of one first layer, at a cost of O(d⁶); above d = 22 scaled from d = 22."""
        known = self.population
        size = min(known.size, 22)
        population = replace(known, size=size, scale=size / known.size)
        member, rng = next(population.members(1))
        root, p = rng.standard_normal((size, size)), self.mean.heights.size
        power = population.plain * self.contraction_noise / n_samples / (2 * size)
        noise = population.scale * np.sqrt(power) * (root + root.T)
        C, _ = population.operator(member, [self.mean], noise)
        basis = np.linalg.qr(member.directions, mode="complete")[0][:, p:]
        atoms, vectors = np.linalg.eigh(basis.T @ C @ basis)
        links = ((basis @ vectors).T @ C @ member.directions).T ** 2
        return Background(atoms, 0.0, np.zeros(p), links=links)

    def spikes(
        self,
        formula: Callable[[float], SpikePrediction],
        sample: WeightedSample,
        n_samples: float,
        n_features: int,
    ) -> InterpolatedSpikes:
        """Overlaps and eigenvalues averaged over draws, and draws of learned features.

        The difference from `formula` is interpolated between the sample sizes of a lattice.
        """
        found = formula(n_samples)
        overlap, places, parts = found.squared_overlap, found.eigenvalues, []
        for size in lattice_sizes(n_samples, self.mean.heights.size, self.per_octave):
            if size.samples not in self.known:
                there = formula(size.samples)
                drawn = self._drawn(size.index, there, sample, size.samples, n_features)
                self.known[size.samples] = there, drawn
            there, drawn = self.known[size.samples]
            overlap = overlap + size.weight * (drawn.squared_overlap - there.squared_overlap)
            places = places + size.weight * (drawn.eigenvalues - there.eigenvalues)
            parts.append((size.weight, drawn))
        spikes = replace(found, squared_overlap=np.clip(overlap, 0.0, 1.0), eigenvalues=places)
        return InterpolatedSpikes(**vars(spikes), parts=tuple(parts))

    def _drawn(
        self,
        index: int,
        found: SpikePrediction,
        sample: WeightedSample,
        n_samples: int,
        n_features: int,
    ) -> OperatorSpikes:
        """Predict the spikes by means over operators that are drawn at one lattice size and kept."""
        p, space, means = self.mean.heights.size, self.population.space, []
        edges = [found.bulk_edges]
        if self.population.plain:
            corrected = predict_spikes(
                sample=sample.clipped(n_samples),
                heights=self.mean.heights,
                n_samples=n_samples,
                n_features=n_features,
                background=self._corrected,
            )
            edges.append(corrected.bulk_edges)
        learned: list[tuple[FixedDraws, FixedDraws]] = []
        # With a total of 7,000 directions, the means have a standard deviation of 0.02. The interpolation
        # averages over the draws of neighbouring sizes, which have different first layers.
        count = int(self.repeats * (int(np.clip(7_000 / space.norm.size, 12, 48)) // 3))
        for member, rng in self.population.members(count, first=index % 3 * count):
            C, B = self.noise.drawn(member, self.mean, n_samples, rng)
            values, vectors = _both_ends(C, p, rng)
            measured = [values]
            if self.population.plain:
                # values <u, C u> of the operator without the contraction, which the learner tests too
                U = space.matrices(vectors.T)
                moved = 2 * np.einsum("kab,bc,kca->k", U, B, U, optimize=True)
                measured.append(values - moved)
            chosen = self._first(measured, edges, float(np.trace(C)) / len(C))
            squared = (member.directions.T @ vectors[:, chosen]) ** 2
            means.append([squared.sum(axis=1), values[chosen][squared.argmax(axis=1)]])
            if len(learned) < 4:
                learned.append(self._learned(member, values[chosen], vectors[:, chosen], rng))
        overlaps, places = np.mean(means, axis=0)
        spikes = replace(found, squared_overlap=overlaps, eigenvalues=places)
        return OperatorSpikes(**vars(spikes), samples=n_samples, learned=tuple(learned))

    def _learned(
        self,
        member: Member,
        values: np.ndarray,
        vectors: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[FixedDraws, FixedDraws]:
        x = rng.standard_normal((2_000, self.population.size))
        h, features = (
            (quadratic_forms(x, Z)[0] - np.trace(Z, axis1=1, axis2=2)) / np.sqrt(2)
            for Z in (member.matrices, self.population.space.matrices(vectors.T))
        )
        labels = np.asarray(self.target.observed_label(member.form.index(h), rng))
        norm = np.sum(x**2, axis=1)
        squared_norm = (norm**2 - 2 * norm + self.population.size) / 2
        noise = random_features(squared_norm, h, len(vectors), rng)
        # These features have the same overlaps but noise along random directions.
        overlap = np.sum((member.directions.T @ vectors) ** 2, axis=1)
        chance = LatentDraws(labels, h, noise).learned(overlap)
        left, _, right = np.linalg.svd(vectors.T @ member.directions)
        known = labels, h, noise
        return FixedDraws(
            *known, features=features, aligned=features @ (left @ right), values=values
        ), FixedDraws(*known, features=chance)

    def _first(
        self, measured: Sequence[np.ndarray], edges: Sequence[Edges], centre: float
    ) -> np.ndarray:
        """Indices of returned directions, ranked by distance beyond an edge, then from the centre."""
        beyond = []
        for at, (lower, upper) in zip(measured, edges, strict=True):
            # Noise exceeds this margin in 1 of 100 cases; it is 2.02 (R / 2) D^(-2/3) for a semicircle.
            margin = 0.5 * (upper - lower) * self.target.n_features_total ** (-2 / 3)
            beyond.append(np.maximum(at - upper, lower - at) - margin)
        # The learner allows its edges an uncertainty of 2 / d of the width of the bulk.
        room = 2 * (edges[0][1] - edges[0][0]) / self.target.dimension
        clear = np.maximum(np.max(beyond, axis=0) - room, 0.0)
        return np.lexsort((-np.abs(measured[0] - centre), -clear))[: self.mean.heights.size]

    @cached_property
    def _corrected(self) -> Background:
        """Background of the operator without its contraction {B, .}."""
        population = replace(self.population, plain=False)
        member, _ = next(population.members(1))
        C, p = population.operator(member, [self.mean])[0], self.mean.heights.size
        basis = np.linalg.qr(member.directions, mode="complete")[0][:, p:]
        return Background(np.linalg.eigvalsh(basis.T @ C @ basis), 0.0, np.zeros(p))


def is_beyond(target: MomentTarget) -> bool:
    """Return True for plain operators too large to draw, with few enough features for a correction."""
    return (
        is_quadratic(target)
        and target.dimension > LARGEST_DRAWN
        and target.features <= REFERENCE // 2
    )


def is_drawn(target: MomentTarget, label_map: LabelMap, *, plain: bool) -> bool:
    """Return True if operators are drawn for a target."""
    # For corrected operators and mapped labels the formula suffices: 88 % of 127 predicted overlaps are
    # within 0.05 of simulations. Drawn operators reach 90 % but take a hundred times longer.
    return can_fit(target) and (plain or label_map == "identity")


def drawn_background(
    law: Any, targets: Sequence[MomentTarget], label_map: LabelMap, *, always: bool = False
) -> Any:
    """Replace a degree-2 background by drawn operators where they are needed, or wherever possible."""
    background, first = law.background, targets[0]
    if not isinstance(background, QuadraticBackground):
        return background
    needed = is_drawn(first, label_map, plain=background.plain)
    if not (needed or (always and can_fit(first))):
        return background
    forms = tuple(rotated_form(target) for target in targets[:FORMS])
    population = Population(forms, first.dimension, 1.0, background.plain)
    few = tuple(targets[: 4 if needed else 2])
    return OperatorDraws(
        mean=Mean(fit_population(few, label_map), law.heights),
        target=first,
        noise=SampleNoise(first, few, label_map, population),
        contraction_noise=background.contraction_noise,
        law=background,
        # Points a factor of two apart share sizes, which are fewer than elsewhere, with more draws each.
        repeats=1.0 if needed else 1.5,
        per_octave=4 if needed else 2,
    )


def _both_ends(
    matrix: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenpairs at the two ends of the spectrum, `count` at each end."""
    from scipy.sparse.linalg import eigsh

    size = len(matrix)
    if size < max(12 * count, 100):
        values, vectors = np.linalg.eigh(matrix)
        ends = np.unique(np.r_[0 : min(count, size), max(size - count, 0) : size])
        return values[ends], vectors[:, ends]
    start = rng.standard_normal(size)
    found: tuple[np.ndarray, np.ndarray] = eigsh(matrix, 2 * count, which="BE", tol=1e-3, v0=start)
    return found
