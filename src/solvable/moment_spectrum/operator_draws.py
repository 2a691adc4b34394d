"""Spectra of random operators distributed as the moment operator of degree-2 features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.moment_spectrum.bulk_edges import (
    Edges,
    centred_edges,
    chaos_law,
    free_upper_edge,
    quadrature_of,
)
from solvable.moment_spectrum.degree_two_background import QuadraticBackground
from solvable.moment_spectrum.draws import is_quadratic, rotated_form, rotated_numbers
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
from solvable.operators import apply_label_map
from solvable.operators.features import HermiteFeatures
from solvable.operators.labels import LabelMap
from solvable.spectra.sample_lattice import lattice_sizes
from solvable.spectra.structured_spikes import (
    Background,
    SpikePrediction,
    WeightedSample,
)

REFERENCE = 40
"""Dimension in which the formula's error is computed, for use in larger dimensions."""

FORMS = 32
"""Number of first layers whose strengths are used in turn, for directions that are not orthogonal."""


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
    extremes: np.ndarray  # mean smallest and largest eigenvalue without the features
    placed: np.ndarray  # True for a feature with its own eigenvalue in every draw
    # pairs of draws, with and without correlation between noise and feature
    learned: tuple[tuple[FixedDraws, FixedDraws], ...]


@dataclass(frozen=True)
class InterpolatedSpikes(SpikePrediction):
    """Spikes interpolated between the sample sizes of a lattice, at which operators are drawn."""

    parts: tuple[tuple[float, OperatorSpikes], ...]  # weight and means of each size of the lattice
    placed: np.ndarray  # True for a feature with its own eigenvalue in every draw close by


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
        edges, placed = np.array(found.bulk_edges), np.ones(overlap.size, dtype=bool)
        # Overlaps bend next to a threshold, where lines between the sizes are 0.02 too low.
        p = overlap.size
        for size in lattice_sizes(n_samples, p, self.per_octave, curved=True):
            if size.samples not in self.known:
                there = formula(size.samples)
                drawn = self._drawn(size.index, there, sample, size.samples, n_features)
                self.known[size.samples] = there, drawn
            there, drawn = self.known[size.samples]
            overlap = overlap + size.weight * (drawn.squared_overlap - there.squared_overlap)
            places = places + size.weight * (drawn.eigenvalues - there.eigenvalues)
            edges = edges + size.weight * (drawn.extremes - np.array(there.bulk_edges))
            placed &= drawn.placed | (abs(size.weight) < 0.1)
            parts.append((size.weight, drawn))
        spikes = replace(
            found,
            squared_overlap=np.clip(overlap, 0.0, 1.0),
            eigenvalues=places,
            bulk_edges=(float(edges[0]), float(edges[1])),
        )
        return InterpolatedSpikes(**vars(spikes), parts=tuple(parts), placed=placed)

    def _drawn(
        self,
        index: int,
        found: SpikePrediction,
        sample: WeightedSample,
        n_samples: int,
        n_features: int,
    ) -> OperatorSpikes:
        """Predict the spikes by means over operators that are drawn at one lattice size and kept."""
        p, space = self.mean.heights.size, self.population.space
        means: list[list[np.ndarray]] = []
        ratio, edges = n_samples / space.norm.size, [found.bulk_edges]
        learned: list[tuple[FixedDraws, FixedDraws]] = []
        # Means have a standard deviation of 0.01, and of 0.03 for a feature that some draws lose. The
        # interpolation averages over the draws of neighbouring sizes, which have different first layers.
        count = int(self.repeats * (int(np.clip(20_000 / space.norm.size, 24, 48)) // 3))
        placed, extremes = np.ones(p, dtype=bool), []
        for member, rng in self.population.members(count, first=index % 3 * count):
            C, B = self.noise.drawn(member, self.mean, n_samples, rng)
            values, vectors = _both_ends(C, p, rng)
            measured, centre = [values], float(np.trace(C)) / len(C)
            if self.population.plain:
                # values <u, C u> of the operator without the contraction, which the learner tests too
                U = space.matrices(vectors.T)
                moved = 2 * np.einsum("kab,bc,kca->k", U, B, U, optimize=True)
                measured.append(values - moved)
                if not means:  # edges of different first layers scatter by 2 % of the half-width
                    counted = self.mean.heights * found.squared_overlap
                    edges = self._edges(member, B, counted, ratio, centre)
            chosen = self._first(measured, edges, centre)
            squared = (member.directions.T @ vectors[:, chosen]) ** 2
            own = values[chosen][squared.argmax(axis=1)]
            means.append([squared.sum(axis=1), own])
            # A feature that a draw loses has no eigenvalue there, but the other edge's or a neighbour's.
            placed &= (squared.max(axis=1) > 0.1) & (np.sign(own) == np.sign(self.mean.heights))
            if len(learned) < 4:
                extremes.append(_extremes(C, member.directions))
                learned.append(self._learned(member, values[chosen], vectors[:, chosen], rng))
        overlaps, places = np.mean(means, axis=0)
        spikes = replace(found, squared_overlap=overlaps, eigenvalues=places)
        return OperatorSpikes(
            **vars(spikes),
            samples=n_samples,
            extremes=np.mean(extremes, axis=0),
            placed=placed,
            learned=tuple(learned),
        )

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

    def _edges(
        self, member: Member, B: np.ndarray, counted: np.ndarray, ratio: float, centre: float
    ) -> list[Edges]:
        """Edges that a learner computes, with margins, with the contraction {B, .} and without it."""
        space, M, (atoms, chance) = self.population.space, member.matrices, self._noise_law
        mean, noise = float(chance @ atoms), centred_edges(atoms, chance, ratio)
        found = []
        for part in (B, np.zeros_like(B)):

            def apply(vectors: np.ndarray, part: np.ndarray = part) -> np.ndarray:
                # U -> {B, U} + 2 sum_i theta_i c_i² M_i U M_i   (sequential 19)
                U = space.matrices(vectors.T)
                images = 2 * np.einsum("i,iab,kbc,icd->kad", counted, M, U, M, optimize=True)
                return space.vectors(images + part @ U + U @ part).T

            measure = quadrature_of(apply, member.directions, np.random.default_rng(0)).centred()
            upper = free_upper_edge(measure, atoms, chance, ratio) - mean
            lower = free_upper_edge(measure.flipped(), -atoms, chance, ratio) + mean
            found.append(replace(noise, lower=-lower, upper=upper))
        # Without the contraction the spectrum's mean is zero.
        D = member.directions.shape[0]
        bulk, corrected, single = (edges.with_margin(dimension=D) for edges in (*found, noise))
        ends = min(bulk[0], single[0]) + centre, max(bulk[1], single[1]) + centre
        return [ends, corrected]

    @cached_property
    def _noise_law(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights of the noise in the corrected operator, as a learner computes them."""
        target = self.target
        rng = random_stream("sequential-recovery", "edges", target.seed)
        latent, squared_norm, _ = rotated_numbers(20_000, target, rng)
        index = rotated_form(target).index(latent)
        T = apply_label_map(np.asarray(target.observed_label(index, rng)), self.noise.label_map)
        # |F|² = (s² - 2 s + d) / 2 for s = |x|²
        s = 1 + np.sqrt(np.maximum(2 * squared_norm + 1 - target.dimension, 0))
        return chaos_law(T - T.mean(), s, HermiteFeatures(2, target.dimension))

    def _first(
        self, measured: Sequence[np.ndarray], edges: Sequence[Edges], centre: float
    ) -> np.ndarray:
        """Indices of returned directions, ranked by distance beyond an edge, then from the centre."""
        beyond = []
        for at, (lower, upper) in zip(measured, edges, strict=True):
            # Noise exceeds this margin in 1 of 100 cases; it is 2.02 (R / 2) D^(-2/3) for a semicircle.
            margin = 0.5 * (upper - lower) * self.target.n_features_total ** (-2 / 3)
            margin *= not self.population.plain  # edges of plain operators contain it
            beyond.append(np.maximum(at - upper, lower - at) - margin)
        # The learner allows its edges an uncertainty of 2 / d of the width of the bulk.
        room = 2 * (edges[0][1] - edges[0][0]) / self.target.dimension
        clear = np.maximum(np.max(beyond, axis=0) - room, 0.0)
        return np.lexsort((-np.abs(measured[0] - centre), -clear))[: self.mean.heights.size]


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


def _extremes(matrix: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Smallest and largest eigenvalue of an operator on the complement of orthonormal columns."""
    images = matrix @ directions
    rest = matrix - images @ directions.T - directions @ images.T
    rest += directions @ (directions.T @ images) @ directions.T
    return np.linalg.eigvalsh(rest)[[0, -1]]


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
