"""Population operators of random first layers of degree 2."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.arrays import random_stream
from solvable.moment_spectrum.orthogonal_form import OrthogonalForm
from solvable.moment_spectrum.population_fit import (
    PopulationRates,
    Symmetric,
    link_matrices,
    sandwich_matrices,
    square_matrices,
    symmetric,
)


@dataclass(frozen=True)
class Member:
    """Random first layer, written in orthonormal directions."""

    form: OrthogonalForm
    matrices: np.ndarray  # matrices M_i of Frobenius norm 1
    directions: np.ndarray  # matrices M_i written as vectors A_i, (D, p)
    relative: np.ndarray  # strengths divided by their means over first layers


@dataclass(frozen=True)
class Mean:
    """Coefficients, spike heights and overall factor of a population operator."""

    rates: PopulationRates
    heights: np.ndarray  # mean of <A_i, C A_i> over first layers
    factor: float = 1.0


@dataclass(frozen=True)
class Population:
    """Population operators of random first layers, from fitted coefficients and given heights."""

    forms: tuple[OrthogonalForm, ...]  # strengths of the first layers, used in turn
    size: int
    scale: float  # size of the matrices divided by the target's dimension
    plain: bool  # True if the operator contains the contraction {B, .}

    @cached_property
    def space(self) -> Symmetric:
        """Coordinates of symmetric matrices of size `size`."""
        return Symmetric(self.size)

    def members(self, count: int, first: int = 0) -> Iterator[tuple[Member, np.random.Generator]]:
        """Yield `count` first layers from number `first` on, each with its own random stream."""
        p, D = self.forms[0].strengths.size, self.space.norm.size
        means = np.mean([form.strengths for form in self.forms], axis=0)
        for k in range(first, first + count):
            rng = random_stream("sequential-recovery", "operator", self.size, p, k)
            A = np.linalg.qr(rng.standard_normal((D, p)))[0]
            form = self.forms[k % len(self.forms)]
            yield Member(form, self.space.matrices(A.T), A, form.strengths / means), rng

    def contraction(self, member: Member, rates: PopulationRates) -> np.ndarray:
        """Contraction matrix B = E[T X]."""
        # The spectrum of a matrix of norm 1 has width d^(-1/2); the spectrum of a product has width 1/d.
        squares = square_matrices(member.matrices, self.scale)
        strengths = member.form.strengths
        return np.asarray(self.scale * np.tensordot(rates.contracted(strengths), squares, axes=1))

    def operator(
        self, member: Member, means: Sequence[Mean], added: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sum of mean operators and {added, .}, and the contraction matrix contained in the sum."""
        M, Q, d = member.matrices, member.directions, self.size
        D, p = Q.shape
        pairs, C = np.zeros((d, d, d, d)), np.zeros((D, D))
        images, heights = np.zeros((D, p)), np.zeros(p)
        whole = np.zeros((d, d)) if added is None else added
        linked, squares = link_matrices(M), self.space.vectors(M @ M)
        for mean in means:
            rates, strengths = mean.rates, member.form.strengths
            factor = mean.factor * self.scale
            B = self.contraction(member, rates)
            Z = sandwich_matrices(M, B, self.scale)
            strength = mean.factor * rates.pairs(strengths)
            strength[:-2] *= self.scale
            pairs += np.tensordot(strength[:, None, None] * Z, Z, axes=(0, 0))
            C += factor * (squares.T * rates.own(strengths)) @ squares
            links = np.einsum("ij,ijab->iab", rates.links(strengths), linked, optimize=True)
            images += factor * self.space.vectors(links).T
            heights += mean.factor * mean.heights * member.relative
            if self.plain:
                whole = whole + mean.factor * B
                # Heights already include the mean of the contraction, so it is subtracted here.
                heights -= 2 * mean.factor * np.einsum("iab,bc,ica->i", M, B, M, optimize=True)
        # The couplings of the spikes to the complement have separate coefficients.
        C += self.space.operator(pairs)
        C -= Q @ (Q.T @ C)
        C -= (C @ Q) @ Q.T
        block = symmetric(Q.T @ images)
        block[np.diag_indices(p)] = heights
        images -= Q @ (Q.T @ images)
        C += images @ Q.T + Q @ (images.T + block @ Q.T)
        eye = np.eye(d)
        ends = np.stack([whole, eye]), np.stack([eye, whole])
        C += self.space.operator(np.tensordot(*ends, axes=(0, 0)))
        return C, whole
