"""The plain operator of degree-2 features: random ones of its law, diagonalised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import comb
from typing import Any, TypeAlias

import numpy as np

from solvable.arrays import random_stream
from solvable.models.sequential.background import QuadraticBackground
from solvable.models.sequential.latent_draws import LatentDraws, random_features
from solvable.models.sequential.orthogonal_form import OrthogonalForm
from solvable.models.sequential.population_fit import (
    PopulationRates,
    Symmetric,
    can_fit,
    fit_population,
    link_matrices,
    quadratic_forms,
    sandwich_matrices,
    square_matrices,
    symmetric,
)
from solvable.models.sequential.rotated_draw import rotated_form
from solvable.models.sequential.sample_kernel import corrected_kernel
from solvable.models.sequential.target import HierarchicalTarget
from solvable.operators import LabelMap
from solvable.spectra.spikes import (
    Background,
    SpikePrediction,
    WeightedSample,
    predict_spikes,
)

FORMS = 32
"""First layers that are not orthogonal whose strengths take turns."""

Edges: TypeAlias = tuple[float, float]
"""Lower and upper edge of a bulk."""


@dataclass(frozen=True)
class _Member:
    """A first layer and the population operator it has: {B, .} and a part of degree four."""

    form: OrthogonalForm
    matrices: np.ndarray  # M_i, |M_i|_F = 1
    directions: np.ndarray  # the same as vectors A, (D, p)
    contraction: np.ndarray  # B
    spread: np.ndarray  # root of E[T^2 x x^T] / E[T^2], by which samples of large labels are longer
    links: np.ndarray  # the part of degree four on the spikes, (D, p)
    held: np.ndarray  # mean <A_i, C A_i> of all but the spikes themselves


@dataclass(frozen=True)
class _Noise:
    """Noise of samples."""

    whole: np.ndarray  # of the part of degree four, (D, D)
    rows: np.ndarray  # the same towards the spikes, (D, p)
    block: np.ndarray  # and among these
    contracted: np.ndarray  # sum of T (x x^T - 1) / n over samples that are drawn one by one
    left: float  # share of the power that the others have


@dataclass(frozen=True, kw_only=True)
class FixedDraws(LatentDraws):
    """Draws of one target with the features of one learner."""

    features: np.ndarray
    aligned: np.ndarray | None = None  # the same turned within their span towards the signal
    values: np.ndarray | None = None  # eigenvalues of its directions

    def spanning(self, features: np.ndarray) -> np.ndarray:
        """Features of which each is nearest to one of the signal."""
        return features if self.aligned is None else self.aligned

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
    forms: tuple[OrthogonalForm, ...]  # of first layers, which take turns
    contraction_noise: float  # n times the variance of the spectrum of the noise in B
    couplings: np.ndarray  # E[T^2 |P K A_i|^2] of the plain kernel on the complement
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
            sample=sample.clipped(n_samples),
            heights=self.heights,
            n_samples=n_samples,
            n_features=n_features,
            background=self._corrected,
        )
        edges = found.bulk_edges, corrected.bulk_edges
        learned: list[tuple[FixedDraws, FixedDraws]] = []
        for member, rng in self._members():
            B, C = self._operator(member, sample, n_samples, n_features, rng)
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
        labels = np.asarray(self.target.label(member.form.index(h)))
        norm = np.sum(x**2, axis=1)
        noise = random_features((norm**2 - 2 * norm + self.size) / 2, h, len(vectors), rng)
        # The same overlaps with directions that lean to no side
        overlap = np.sum((member.directions.T @ vectors) ** 2, axis=1)
        chance = LatentDraws(labels, h, noise).learned(overlap)
        left, _, right = np.linalg.svd(vectors.T @ member.directions)
        known = labels, h, noise
        return FixedDraws(
            *known, features=features, aligned=features @ (left @ right), values=values
        ), FixedDraws(*known, features=chance)

    def _members(self) -> Iterator[tuple[_Member, np.random.Generator]]:
        d, p, D = self.size, self.heights.size, self._space.norm.size
        # Matrices of norm 1 have a spectrum of width d^(-1/2), their products one of width 1/d.
        scale, rates = self.scale, self.rates
        for k in range(int(np.clip(7_000 / D, 12, 48))):
            rng = random_stream("sequential-recovery", "operator", d, p, k)
            A = np.linalg.qr(rng.standard_normal((D, p)))[0]
            M = self._space.matrices(A.T)
            form = self.forms[k % len(self.forms)]
            squares = square_matrices(M, scale)
            B, longer = (
                scale
                * np.tensordot(rates.contracted(form.strengths, squared=kind), squares, axes=1)
                for kind in (False, True)
            )
            values, vectors = np.linalg.eigh(longer)
            spread = (vectors * np.sqrt(np.maximum(1 + values, 0.1))) @ vectors.T
            joined = rates.links(form.strengths)
            links = scale * np.einsum("ij,ijab->iab", joined, link_matrices(M), optimize=True)
            held = np.einsum("iab,iab->i", links + 2 * symmetric(B @ M), M)
            yield _Member(form, M, A, B, spread, self._space.vectors(links).T, held), rng

    @cached_property
    def _spikes(self) -> np.ndarray:
        """t_k of sum_k t_k A_k A_k^T, with which heights have their mean."""
        held = [member.held for member, _ in self._members()]
        return np.asarray(self.heights - np.mean(held, axis=0))

    def _relative(self, member: _Member) -> np.ndarray:
        """Strengths of its directions, in units of their means."""
        means = np.mean([form.strengths for form in self.forms], axis=0)
        return np.asarray(member.form.strengths / means)

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
        scale, strengths = self.scale, member.form.strengths
        Z = sandwich_matrices(member.matrices, member.contraction, scale)
        strength = self.rates.pairs(strengths) * np.append(np.full(len(Z) - 2, scale), np.ones(2))
        matrix = self._space.operator(np.tensordot(strength[:, None, None] * Z, Z, axes=(0, 0)))
        squares = self._space.vectors(member.matrices @ member.matrices)
        matrix += scale * (squares.T * self.rates.own(strengths)) @ squares
        return matrix

    def _contraction(self, B: np.ndarray) -> np.ndarray:
        """U -> B U + U B."""
        eye = np.eye(len(B))
        return self._space.operator(np.multiply.outer(B, eye) + np.multiply.outer(eye, B))

    def _gain(self, sample: WeightedSample, n_features: int) -> np.ndarray:
        """What corrected noise towards a spike has to grow by, to be that of the plain operator."""
        # E[T^2 |{X, A_i}|^2] is that of the contraction; the two are correlated where T^2 is with h_i^2.
        d = self.target.dimension
        contracted = 2 * (d + 2) / d * self.contraction_noise
        corrected = n_features * (sample.probabilities @ sample.couplings)
        return np.sqrt(np.clip((self.couplings - contracted) / corrected, 0.5, 2))

    def _noisy(
        self,
        member: _Member,
        n_samples: float,
        rng: np.random.Generator,
        noise: _Noise | None = None,
    ) -> np.ndarray:
        """B as samples see it: those drawn one by one, and Gaussian noise for the others."""
        d = self.size
        root = rng.standard_normal((d, d))
        left = 1.0 if noise is None else noise.left
        N = np.sqrt(self.contraction_noise * left / n_samples / (2 * d)) * (root + root.T)
        N *= self.scale
        if noise is not None:
            N += np.sqrt(self.scale) * noise.contracted
        S = member.spread
        return np.asarray(member.contraction + d / np.trace(S @ S) * S @ N @ S)

    def _operator(
        self,
        member: _Member,
        sample: WeightedSample,
        n_samples: float,
        n_features: int,
        rng: np.random.Generator,
    ) -> tuple[np.ndarray, np.ndarray]:
        """One draw of B and of the whole operator."""
        Q = member.directions
        # As many noisy directions per sample as there are in all
        n = n_samples * (len(Q) - self.heights.size) / n_features
        stretch = self._space.operator(np.multiply.outer(member.spread, member.spread))
        stretch *= np.sqrt(len(Q) / np.sum(stretch**2))
        noise = _noise(sample, n, Q, stretch, self._space, rng)
        B = self._noisy(member, n_samples, rng, noise)
        rows, block = noise.rows, noise.block
        C = self._inner(member) + noise.whole
        C -= Q @ (Q.T @ C)
        C -= (C @ Q) @ Q.T
        rows *= self._gain(sample, n_features)
        rows += member.links
        rows -= Q @ (Q.T @ rows)
        C += rows @ Q.T + Q @ rows.T
        # The contraction acts on the spikes too: their heights hold its mean already.
        block *= np.sqrt(n / n_samples)
        held = np.diag(self._spikes * self._relative(member)) + symmetric(Q.T @ member.links)
        return B, np.asarray(C + Q @ (held + block) @ Q.T + self._contraction(B))


def drawn_background(
    law: Any, couplings: np.ndarray, targets: Sequence[HierarchicalTarget], label_map: LabelMap
) -> Any:
    """Draws of operators in place of a plain background, where there are few enough features."""
    background, heights = law.background, law.heights
    plain = isinstance(background, QuadraticBackground) and background.contraction is not None
    first = targets[0]
    if not plain or not can_fit(first):
        return background
    return OperatorDraws(
        rates=fit_population(targets[:4], label_map),
        heights=heights,
        target=first,
        forms=tuple(rotated_form(target) for target in targets[:FORMS]),
        contraction_noise=background.contraction_noise,
        couplings=couplings,
    )


def _noise(
    sample: WeightedSample,
    n: float,
    Q: np.ndarray,
    stretch: np.ndarray,
    space: Symmetric,
    rng: np.random.Generator,
) -> _Noise:
    """Noise of n samples with spikes Q."""
    (D, p), d = Q.shape, space.size
    # The D largest weights are drawn one by one; the others leave Gaussian entries.
    count = max(min(D, int(n / 2)), 1)
    order = np.argsort(-np.abs(sample.weights))
    reached = np.cumsum(sample.probabilities[order])
    kept = np.zeros(order.size)
    kept[order] = np.clip(reached - count / n, 0, sample.probabilities[order])
    places = np.cumsum(rng.exponential(size=count)) / n
    drawn = order[np.minimum(np.searchsorted(reached, places), order.size - 1)]
    w = sample.weights[drawn]
    h = rng.standard_normal((count, p))
    h *= np.sqrt(sample.couplings[drawn]) / np.maximum(np.abs(w), 1e-300)[:, None]
    # He_4(x) / 2 as an operator is K = f f^T - 1 - {x x^T - 1, .}, f = (x x^T - 1) / sqrt(2), and
    # weights are of kernels of norm D.
    x = rng.standard_normal((count, d))
    x *= np.sqrt(d) / np.linalg.norm(x, axis=1, keepdims=True)
    none = np.empty((1, 0))
    kernel = corrected_kernel(
        latent=none, squared_input_norm=np.array([float(d)]), squared_images=none,
        traces=none[0], dimension=d,
    )  # fmt: skip
    f = space.vectors(x[:, :, None] * x[:, None] - np.eye(d)) / np.sqrt(2)
    v = w / n / kernel.size
    single = (f.T * v) @ f
    contracted = (x.T * v) @ x - v.sum() * np.eye(d)
    X = np.multiply.outer(contracted, np.eye(d))
    single -= space.operator(X + X.transpose(2, 3, 0, 1))
    single[np.diag_indices(D)] -= v.sum() * (d - 1) / (d + 1)  # |f|^2 / D
    left = float(kept @ sample.weights**2)
    root = rng.standard_normal((D, D))
    tensor = space.symmetrised((root + root.T) / np.sqrt(2))
    # Symmetric in all four indices, binom(d + 3, 4) of them, and of norm D
    tensor *= D * np.sqrt(left / n / (2 * comb(d + 3, 4)))
    N = stretch @ (single + tensor) @ stretch
    # E[u_i] / n is the variance of entries towards a spike.
    ratio = np.sqrt(kept @ sample.couplings / max(left, 1e-300))
    rows = stretch @ (tensor @ (stretch @ Q)) * ratio
    block = Q.T @ rows * ratio[:, None]
    rows += ((f @ stretch).T * (w / n)) @ h * np.sqrt((d + 1) / (d - 1))
    share = left / float(sample.probabilities @ sample.weights**2)
    return _Noise(N, rows, block, contracted, share)


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
