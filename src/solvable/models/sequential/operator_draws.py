"""The plain operator of degree-2 features: random ones of its law, diagonalised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from solvable.arrays import random_stream
from solvable.models.sequential.background import QuadraticBackground
from solvable.models.sequential.latent_draws import LatentDraws, random_features
from solvable.models.sequential.population_fit import (
    PopulationRates,
    Symmetric,
    can_fit,
    fit_population,
    link_matrices,
    quadratic_forms,
    sandwich_matrices,
    symmetric,
)
from solvable.models.sequential.target import HierarchicalTarget
from solvable.operators import LabelMap
from solvable.spectra.spikes import (
    Background,
    SpikePrediction,
    WeightedSample,
    predict_spikes,
)

Edges: TypeAlias = tuple[float, float]
"""Lower and upper edge of a bulk."""


@dataclass(frozen=True)
class _Member:
    """A first layer and the population operator it has: {B, .} and a part of degree four."""

    matrices: np.ndarray  # M_i, |M_i|_F = 1
    directions: np.ndarray  # the same as vectors A, (D, p)
    contraction: np.ndarray  # B
    spread: np.ndarray  # root of E[T^2 x x^T] / E[T^2], by which samples of large labels are longer
    links: np.ndarray  # the part of degree four on the spikes, (D, p)
    held: np.ndarray  # mean <A_i, C A_i> of all but the spikes themselves


@dataclass(frozen=True, kw_only=True)
class FixedDraws(LatentDraws):
    """Draws of one target with the features of one learner."""

    features: np.ndarray
    values: np.ndarray | None = None  # eigenvalues of its directions

    def learned(self, squared_overlap: np.ndarray) -> np.ndarray:
        """The learned features, whatever overlap is asked for."""
        return self.features


@dataclass(frozen=True)
class OperatorSpikes(SpikePrediction):
    """Spikes of drawn operators."""

    learned: tuple[tuple[FixedDraws, FixedDraws], ...]  # as they are, and leaning to no side
    share: float  # of the dimension that was drawn


@dataclass(frozen=True)
class OperatorDraws:
    """Plain operators of random first layers with noise of the law that samples have."""

    rates: PopulationRates
    heights: np.ndarray  # mean of <A_i, C A_i>
    target: HierarchicalTarget  # one of those that the first layers are drawn for
    contraction_noise: float  # n times the variance of the spectrum of the noise in B
    largest: int = 28  # dimension of the operators; those of larger ones are scaled down to it

    @property
    def scale(self) -> float:
        """Share of the dimension that is drawn."""
        return self.size / self.target.dimension

    @property
    def size(self) -> int:
        """Dimension of the matrices that are drawn."""
        return min(self.target.dimension, self.largest)

    @cached_property
    def _space(self) -> Symmetric:
        return Symmetric(self.size)

    def at(self, n_samples: float) -> Background:
        """Background of one first layer; O(d^6), d at most 22."""
        if self.size > 22:
            return replace(self, largest=22).at(n_samples)
        member, rng = next(self._members())
        B = self._noisy(member, n_samples, rng)
        p, space = self.heights.size, self._space
        matrix = self._inner(member) + self._contraction(B)
        basis = np.linalg.qr(member.directions, mode="complete")[0][:, p:]
        atoms, vectors = np.linalg.eigh(basis.T @ matrix @ basis)
        images = member.links + space.vectors(2 * symmetric(B @ member.matrices)).T
        links = ((basis @ vectors).T @ images).T ** 2
        return Background(atoms, 0.0, np.zeros(p), links=links)

    def spikes(
        self,
        found: SpikePrediction,
        sample: WeightedSample,
        n_samples: float,
        n_features: int,
    ) -> OperatorSpikes:
        """The prediction with mean overlaps and places, and draws of what is learned."""
        p, means = self.heights.size, []
        corrected = predict_spikes(
            sample=sample,
            heights=self.heights,
            n_samples=n_samples,
            n_features=n_features,
            background=self._corrected,
        )
        edges = found.bulk_edges, corrected.bulk_edges
        learned: list[tuple[FixedDraws, FixedDraws]] = []
        for member, rng in self._members():
            B = self._noisy(member, n_samples, rng)
            C = self._operator(member, B, sample, n_samples, n_features, rng)
            values, vectors = _both_ends(C, p, rng)
            # <u, C u> less what the contraction gives, as a learner tests it too
            U = self._space.matrices(vectors.T)
            quotients = values - 2 * np.einsum("kab,bc,kca->k", U, B, U, optimize=True)
            chosen = self._first(values, quotients, edges, float(np.trace(C)) / len(C))
            squared = (member.directions.T @ vectors[:, chosen]) ** 2
            means.append([squared.sum(axis=1), values[chosen][squared.argmax(axis=1)]])
            if len(learned) < 12:
                learned.append(self._learned(member, values[chosen], vectors[:, chosen], rng))
        overlaps, places = np.mean(means, axis=0)
        known = replace(found, squared_overlap=overlaps, eigenvalues=places)
        return OperatorSpikes(**vars(known), learned=tuple(learned), share=self.scale)

    def _learned(
        self,
        member: _Member,
        values: np.ndarray,
        vectors: np.ndarray,
        rng: np.random.Generator,
    ) -> tuple[FixedDraws, FixedDraws]:
        x = rng.standard_normal((2_000, self.size))
        h, features = (
            (quadratic_forms(x, Z)[0] - np.trace(Z, axis1=1, axis2=2)) / np.sqrt(2)
            for Z in (member.matrices, self._space.matrices(vectors.T))
        )
        index = (h**2 - 1) @ self.target.weights / np.sqrt(2)
        labels = np.asarray(self.target.label(index))
        norm = np.sum(x**2, axis=1)
        noise = random_features((norm**2 - 2 * norm + self.size) / 2, h, len(vectors), rng)
        # The same overlaps with directions that lean to no side
        overlap = np.sum((member.directions.T @ vectors) ** 2, axis=1)
        chance = LatentDraws(labels, h, noise).learned(overlap)
        known = labels, h, noise
        return FixedDraws(*known, features=features, values=values), FixedDraws(
            *known, features=chance
        )

    def _members(self) -> Iterator[tuple[_Member, np.random.Generator]]:
        d, p, D = self.size, self.heights.size, self._space.norm.size
        # Matrices of norm 1 have a spectrum of width d^(-1/2), their products one of width 1/d.
        scale, rates = self.scale, self.rates
        for k in range(int(np.clip(4_500 / D, 8, 48))):
            rng = random_stream("sequential-recovery", "operator", d, p, k)
            A = np.linalg.qr(rng.standard_normal((D, p)))[0]
            M = self._space.matrices(A.T)
            B = scale * np.tensordot(rates.squares[:-1], M @ M, axes=1)
            B += scale * rates.squares[-1] * np.eye(d)
            longer = scale * np.tensordot(rates.spread[:-1], M @ M, axes=1)
            values, vectors = np.linalg.eigh(longer + scale * rates.spread[-1] * np.eye(d))
            spread = (vectors * np.sqrt(np.maximum(1 + values, 0.1))) @ vectors.T
            links = scale * np.einsum("ij,ijab->iab", rates.links, link_matrices(M), optimize=True)
            held = np.einsum("iab,iab->i", links + 2 * symmetric(B @ M), M)
            yield _Member(M, A, B, spread, self._space.vectors(links).T, held), rng

    @cached_property
    def _spikes(self) -> np.ndarray:
        """t_k of sum_k t_k A_k A_k^T, with which heights have their mean."""
        held = [member.held for member, _ in self._members()]
        return np.asarray(self.heights - np.mean(held, axis=0))

    def _first(
        self, values: np.ndarray, corrected: np.ndarray, edges: tuple[Edges, Edges], centre: float
    ) -> np.ndarray:
        """The directions of a learner: clearly beyond an edge, or else farthest from the centre."""
        beyond = []
        for at, (lower, upper) in zip((values, corrected), edges, strict=True):
            # Noise stays within in 99 of a hundred cases: 2.02 (R / 2) D^(-2/3) for a semicircle.
            margin = 0.5 * (upper - lower) * self.target.n_features_total ** (-2 / 3)
            beyond.append(np.maximum(at - upper, lower - at) - margin)
        # A learner knows edges to 2 / d of the width.
        room = 2 * (edges[0][1] - edges[0][0]) / self.target.dimension
        clear = np.maximum(np.max(beyond, axis=0) - room, 0.0)
        return np.lexsort((-np.abs(values - centre), -clear))[: self.heights.size]

    @cached_property
    def _corrected(self) -> Background:
        """Background without the contraction."""
        member, _ = next(self._members())
        matrix, p = self._inner(member), self.heights.size
        basis = np.linalg.qr(member.directions, mode="complete")[0][:, p:]
        return Background(np.linalg.eigvalsh(basis.T @ matrix @ basis), 0.0, np.zeros(p))

    def _inner(self, member: _Member) -> np.ndarray:
        """Population operator of degree four, but for the spikes."""
        scale, rates = self.scale, self.rates
        Z = sandwich_matrices(member.matrices, member.contraction, scale)
        strength = rates.pairs * np.append(np.full(len(Z) - 2, scale), np.ones(2))
        matrix = self._space.operator(np.tensordot(strength[:, None, None] * Z, Z, axes=(0, 0)))
        squares = self._space.vectors(member.matrices @ member.matrices)
        matrix += scale * (squares.T * rates.own) @ squares
        return matrix

    def _contraction(self, B: np.ndarray) -> np.ndarray:
        """U -> B U + U B."""
        eye = np.eye(len(B))
        return self._space.operator(np.multiply.outer(B, eye) + np.multiply.outer(eye, B))

    def _noisy(self, member: _Member, n_samples: float, rng: np.random.Generator) -> np.ndarray:
        """B as samples see it."""
        d = self.size
        root = rng.standard_normal((d, d))
        scale = np.sqrt(self.contraction_noise / n_samples / (2 * d))
        S = member.spread
        return np.asarray(
            member.contraction + scale * d / np.trace(S @ S) * S @ (root + root.T) @ S
        )

    def _operator(
        self,
        member: _Member,
        B: np.ndarray,
        sample: WeightedSample,
        n_samples: float,
        n_features: int,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """One draw of the whole operator."""
        Q = member.directions
        # As many noisy directions per sample as there are in all
        n = n_samples * (len(Q) - self.heights.size) / n_features
        stretch = self._space.operator(np.multiply.outer(member.spread, member.spread))
        stretch *= np.sqrt(len(Q) / np.sum(stretch**2))
        noise, rows, block = _noise(sample, n, Q, stretch, rng)
        C = self._inner(member) + noise
        C -= Q @ (Q.T @ C)
        C -= (C @ Q) @ Q.T
        rows += member.links
        rows -= Q @ (Q.T @ rows)
        C += rows @ Q.T + Q @ rows.T
        # The contraction acts on the spikes too: their heights hold its mean already.
        block *= np.sqrt(n / n_samples)
        held = np.diag(self._spikes) + symmetric(Q.T @ member.links)
        return np.asarray(C + Q @ (held + block) @ Q.T + self._contraction(B))


def drawn_background(
    background: Any, heights: np.ndarray, targets: Sequence[HierarchicalTarget], label_map: LabelMap
) -> Any:
    """Draws of operators in place of a plain background, where there are few enough features."""
    plain = isinstance(background, QuadraticBackground) and background.contraction is not None
    first = targets[0]
    if not plain or not can_fit(first):
        return background
    return OperatorDraws(
        rates=fit_population(targets[:4], label_map),
        heights=heights,
        target=first,
        contraction_noise=background.contraction_noise,
    )


def _noise(
    sample: WeightedSample, n: float, Q: np.ndarray, stretch: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Noise of n samples: on all directions, towards the spikes Q, and among these."""
    D, p = Q.shape
    # The D largest weights are drawn one by one, w g g^T; the others leave Gaussian entries.
    count = max(min(D, int(n / 2)), 1)
    order = np.argsort(-np.abs(sample.weights))
    reached = np.cumsum(sample.probabilities[order])
    kept = np.zeros(order.size)
    kept[order] = np.clip(reached - count / n, 0, sample.probabilities[order])
    places = (np.arange(count) + rng.random()) / n
    drawn = order[np.minimum(np.searchsorted(reached, places), order.size - 1)]
    w = sample.weights[drawn]
    g, h = rng.standard_normal((count, D)), rng.standard_normal((count, p))
    h *= np.sqrt(sample.couplings[drawn]) / np.maximum(np.abs(w), 1e-300)[:, None]
    g -= (g @ Q) @ Q.T
    g = g @ stretch
    g -= (g @ Q) @ Q.T
    weighted = g.T * (w / n)
    left = float(kept @ sample.weights**2)
    root = rng.standard_normal((D, D))
    N = np.sqrt(left / n / 2) * (stretch @ (root + root.T) @ stretch)
    # E[u_i] / n is the variance of entries towards a spike.
    ratio = np.sqrt(kept @ sample.couplings / max(left, 1e-300))
    rows = (N @ Q) * ratio
    block = Q.T @ rows * ratio[:, None]
    N[np.diag_indices(D)] -= w.sum() / n
    return N + weighted @ g, rows + weighted @ h, block


def _both_ends(
    matrix: np.ndarray, count: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """So many eigenpairs of either end."""
    from scipy.sparse.linalg import eigsh

    size = len(matrix)
    if size < max(12 * count, 100):
        values, vectors = np.linalg.eigh(matrix)
        ends = np.unique(np.r_[0 : min(count, size), max(size - count, 0) : size])
        return values[ends], vectors[:, ends]
    start = rng.standard_normal(size)
    found: tuple[np.ndarray, np.ndarray] = eigsh(matrix, 2 * count, which="BE", tol=1e-3, v0=start)
    return found
