"""Noise of samples in operators of degree 2: the largest one by one, a Gaussian tensor for the rest."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import comb

import numpy as np

from solvable.arrays import random_stream
from solvable.models.sequential.operator_population import Mean, Member, Population
from solvable.models.sequential.population_fit import fit_population
from solvable.models.sequential.rotated_draw import rotated_form, rotated_numbers
from solvable.models.sequential.sample_kernel import corrected_kernel
from solvable.models.sequential.target import HierarchicalTarget
from solvable.operators import LabelMap, apply_label_map

SINGLE = 4
"""Samples per direction that are drawn one by one: two or more of equal size make a bulk skewed."""

WORK = 2e9
"""Operations on them, which limit their number in many directions."""

POOL = 5e8
"""Operations on all samples: where there are more, the sum of some is scaled."""

MOST = 200_000
"""Samples at most."""


@dataclass(frozen=True)
class SampleNoise:
    """Noise of samples of a target in operators of drawn first layers."""

    target: HierarchicalTarget
    targets: tuple[HierarchicalTarget, ...]  # whose means are those of the largest labels
    label_map: LabelMap
    population: Population
    known: dict[float, Mean] = field(default_factory=dict, repr=False, compare=False)

    def drawn(
        self, member: Member, mean: Mean, n_samples: float, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """An operator as so many samples see it, and the contraction that it holds."""
        population, Q = self.population, member.directions
        (D, p), d, n = Q.shape, population.size, n_samples * population.scale**2
        share = 2.0 ** np.floor(np.log2(min(min(SINGLE * D, WORK / D**2) / n, 1)))
        # As many samples as there are, or a part of them whose sum is scaled
        count = int(max(min(n, max(POOL / (p * d**2), 2 * D), MOST), 64))
        x = rng.standard_normal((count, d))
        forms = np.stack([np.einsum("nd,nd->n", x @ M, x) for M in member.matrices], axis=1)
        latent = (forms - np.trace(member.matrices, axis1=1, axis2=2)) / np.sqrt(2)
        T = apply_label_map(
            np.asarray(self.target.label(member.form.index(latent))), self.label_map
        )
        rest, first = np.split(np.argsort(np.abs(T)), [count - int(share * count)])
        # T K / n = T (f f^T - 1 - {x x^T - 1, .}) / n, f = (x x^T - 1) / sqrt(2), less its mean
        part = np.sqrt(count / n)
        largest, X = T[first] * part / count, x[first]
        f = population.space.vectors(X[:, :, None] * X[:, None] - np.eye(d)).astype(np.float32)
        known = self._largest(share)
        contracted = (X.T * largest) @ X - largest.sum() * np.eye(d)
        gauss = np.zeros((d, d))
        if rest.size:
            # |x x^T - 1|_F^2 has mean d (d + 1).
            power = np.sum(T[rest] ** 2) / count * (d + 1) / n
            root = rng.standard_normal((d, d))
            gauss += np.sqrt(power / (2 * d)) * (root + root.T)
        C, B = population.operator(
            member,
            [mean, replace(known, factor=-part)],
            gauss if population.plain else -contracted,
        )
        C += (f.T * (largest / 2).astype(np.float32)) @ f
        C[np.diag_indices(D)] -= largest.sum()
        if rest.size:
            # All of the rest are alike: some say what their kernels are.
            some = rng.permutation(rest)[:10_000]
            C += self._rest(member, x[some], T[some], latent[some], rest.size / count / n, rng)
        return C, B + contracted if population.plain else B

    def _rest(
        self,
        member: Member,
        x: np.ndarray,
        T: np.ndarray,
        latent: np.ndarray,
        factor: float,
        rng: np.random.Generator,
    ) -> np.ndarray:
        """Gaussian noise of the power of given samples, symmetric in all four indices."""
        Q, d, M = member.directions, self.population.size, member.matrices
        kernel = corrected_kernel(
            latent=latent,
            squared_input_norm=np.sum(x**2, axis=1),
            squared_images=np.stack([np.sum((x @ one) ** 2, axis=1) for one in M], axis=1),
            traces=np.trace(M, axis1=1, axis2=2),
            dimension=d,
        )
        power = np.mean((T * kernel.rest) ** 2)
        root = rng.standard_normal((len(Q), len(Q)))
        tensor = self.population.space.symmetrised((root + root.T) / np.sqrt(2))
        tensor *= len(Q) * np.sqrt(power * factor / (2 * comb(d + 3, 4)))
        # E[T^2 |P K A_i|^2] towards a spike
        grown = Q * (np.sqrt(T**2 @ kernel.outer / T.size / power) - 1)
        tensor += grown @ (Q.T @ tensor)
        tensor += (tensor @ Q) @ grown.T
        return np.asarray(tensor)

    def _largest(self, share: float) -> Mean:
        """Rates and heights of labels that are set to zero but for the largest."""
        if share not in self.known:

            def truncated(labels: np.ndarray) -> np.ndarray:
                T = apply_label_map(labels, self.label_map)
                size = np.abs(T)
                # Of equal labels, as clipped ones are, a part is among the largest.
                least = np.quantile(size, 1 - share, method="lower")
                equal = size == least
                part = (share * size.size - np.sum(size > least)) / equal.sum()
                return T * np.where(equal, part, size > least)

            means = np.mean([form.strengths for form in self.population.forms], axis=0)
            draws = int(np.clip(4e6 / means.size / len(self.targets), 5_000, 100_000))
            heights = []
            for target in self.targets:
                rng = random_stream("sequential-recovery", "largest labels", target.seed)
                form = rotated_form(target)
                latent, _, kernel = rotated_numbers(draws, target, rng)
                T = truncated(np.asarray(target.label(form.index(latent))))
                diagonal = latent**2 - 1 if self.population.plain else kernel.diagonal
                heights.append(T @ diagonal / draws * means / form.strengths)
            rates = fit_population(self.targets, truncated)
            self.known[share] = Mean(rates, np.mean(heights, axis=0))
        return self.known[share]
