"""Noise of operators of degree 2: single large samples, and a Gaussian tensor for all other samples."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from solvable.arrays import random_stream
from solvable.moment_spectrum.draws import rotated_form, rotated_numbers
from solvable.moment_spectrum.operator_population import Mean, Member, Population
from solvable.moment_spectrum.population_fit import fit_population
from solvable.moment_spectrum.sample_kernel import SampleKernel, corrected_kernel, plain_kernel
from solvable.moment_spectrum.target_protocol import MomentTarget
from solvable.operators import apply_label_map
from solvable.operators.labels import LabelMap

SINGLE = 8
"""Largest number of singly drawn samples per direction of the operator."""

WORK = 4e9
"""Largest number of operations on single samples."""

MOST = 200_000
"""Largest number of drawn samples."""


@dataclass(frozen=True)
class SampleNoise:
    """Noise of finitely many samples in operators of drawn first layers."""

    # The noise has the second and third cumulant of (1/n) sum_mu T_mu K_mu. The third cumulant skews the
    # bulk: with features of one sign, large labels are positive and occur at large inputs. A sample of
    # label T is drawn singly with probability min(1, |T| / tau)³ and size max(|T|, tau). This keeps the
    # third cumulant; the remaining part T² (1 - |T| / max(|T|, tau)) of the second cumulant is a Gaussian
    # tensor   (sequential 23).
    target: MomentTarget
    targets: tuple[MomentTarget, ...]  # targets used to fit the mean of the singly drawn samples
    label_map: LabelMap
    population: Population
    known: dict[tuple[float, float], Mean] = field(default_factory=dict, repr=False, compare=False)

    def drawn(
        self, member: Member, mean: Mean, n_samples: float, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw an operator at a number of samples, and the contraction contained in the operator."""
        population, d = self.population, self.population.size
        n = n_samples * population.scale**2
        # Separate streams make the random numbers independent of n.
        roots, chances, inputs = rng.spawn(3)
        # Above MOST samples each drawn sample represents several samples.
        several = 2.0 ** max(np.ceil(np.log2(n / MOST)), 0)
        x = inputs.standard_normal((max(int(n / several), 64), d))
        forms = np.stack([np.einsum("nd,nd->n", x @ M, x) for M in member.matrices], axis=1)
        latent = (forms - np.trace(member.matrices, axis1=1, axis2=2)) / np.sqrt(2)
        labels = np.asarray(self.target.observed_label(member.form.index(latent), inputs))
        T = apply_label_map(labels, self.label_map)
        # A mean is fitted for each level tau. The levels are rounded, so that draws can share a fitted
        # mean.
        D = population.space.norm.size
        tau = single_level(np.abs(T), n, min(SINGLE * D, WORK / D**2), steps=2)
        size = single_sizes(np.abs(T), tau, several)
        chance = several * (np.abs(T) / size) ** 3
        single = np.flatnonzero(chances.random(len(T)) < chance)
        weights, X = np.sign(T[single]) * size[single] / n, x[single]
        # T K / n = T (f f^T - 1 - {x x^T - 1, .}) / n, f = (x x^T - 1) / sqrt(2), less its mean
        f = population.space.squares(X.astype(np.float32))
        contracted = (X.T * weights) @ X - weights.sum() * np.eye(d)
        C, B = population.operator(
            member,
            [mean, replace(self._mean(tau, several), factor=-1.0)],
            None if population.plain else -contracted,
        )
        C += (f.T * (weights / 2).astype(np.float32)) @ f
        C[np.diag_indices(len(C))] -= weights.sum()
        B = B + contracted if population.plain else B
        # The remaining second cumulant is T² - chance / several size² = T² (1 - |T| / size).
        power = T**2 * (1 - np.abs(T) / size)
        if tau:
            some = slice(
                min(len(T), 20_000)
            )  # rows used to compute the kernels of the remaining noise
            kernel = self._kernel(member, x[some], latent[some])
            added, moved = self._rest(member, kernel, power[some] / n, roots)
            C, B = C + added, B + moved
        return C, B

    def _kernel(self, member: Member, x: np.ndarray, latent: np.ndarray) -> SampleKernel:
        """Norms and entries of the kernels of given samples."""
        d, M, squared = self.population.size, member.matrices, np.sum(x**2, axis=1)
        if self.population.plain:
            squared_norm = (squared**2 - 2 * squared + d) / 2
            n_features = self.population.space.norm.size
            return plain_kernel(latent=latent, squared_norm=squared_norm, n_features=n_features)
        return corrected_kernel(
            latent=latent,
            squared_input_norm=squared,
            squared_images=np.stack([np.sum((x @ one) ** 2, axis=1) for one in M], axis=1),
            traces=np.trace(M, axis1=1, axis2=2),
            dimension=d,
        )

    def _rest(
        self, member: Member, kernel: SampleKernel, power: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Gaussian noise of given powers, and the contraction contained in the noise."""
        space, Q, d = self.population.space, member.directions, self.population.size
        D, p = Q.shape
        first, second = rng.standard_normal((D, D)), rng.standard_normal((d, d))
        # The part of degree four is symmetric in all four indices. For a standard normal x its squared
        # norm is 6 C(d + 3, 4); the squared norm of x x^T - 1 is d (d + 1).
        noise = space.symmetrised((first + first.T) / np.sqrt(2)) * np.sqrt(3 * power.mean())
        contraction = np.zeros((d, d))
        if self.population.plain:
            contraction = np.sqrt(power.mean() / 2) * (second + second.T)
            ends = np.stack([contraction, np.eye(d)]), np.stack([np.eye(d), contraction])
            noise += space.operator(np.tensordot(*ends, axes=(0, 0)))
        # Scale to E[T² |P K P|²] on the complement P of the features, as labels correlate with the norm.
        images = noise @ Q
        drawn = np.sum(noise**2) - 2 * np.sum(images**2) + np.sum((Q.T @ images) ** 2)
        wanted = power @ kernel.rest**2 / power.size * (D - p) ** 2
        scale = np.sqrt(wanted / drawn)
        noise *= scale
        # Scale the couplings to a feature to E[T² |P K A_i|²].
        couplings = power @ kernel.outer / power.size * (D - p)
        grown = Q * (np.sqrt(couplings * (D - p) / wanted) - 1)
        noise += grown @ (Q.T @ noise)
        noise += (noise @ Q) @ grown.T
        return noise, scale * contraction

    def _mean(self, tau: float, several: float) -> Mean:
        """Rates and spike heights of single samples, which have labels T (|T| / size)²."""
        if (tau, several) not in self.known:

            def single(labels: np.ndarray) -> np.ndarray:
                T = apply_label_map(labels, self.label_map)
                # The mean contribution of a sample is its chance times its signed size, (|T| / size)³
                # size.
                return T * (np.abs(T) / single_sizes(np.abs(T), tau, several)) ** 2

            means = np.mean([form.strengths for form in self.population.forms], axis=0)
            draws = int(np.clip(4e6 / means.size / len(self.targets), 5_000, 100_000))
            heights = []
            for target in self.targets:
                rng = random_stream("sequential-recovery", "largest labels", target.seed)
                form = rotated_form(target)
                latent, _, kernel = rotated_numbers(draws, target, rng)
                T = single(np.asarray(target.observed_label(form.index(latent), rng)))
                diagonal = latent**2 - 1 if self.population.plain else kernel.diagonal
                heights.append((T - T.mean()) @ diagonal / draws * means / form.strengths)
            rates = fit_population(self.targets, single)
            self.known[tau, several] = Mean(rates, np.mean(heights, axis=0))
        return self.known[tau, several]


def single_level(sizes: np.ndarray, n: float, budget: float, steps: float | None = None) -> float:
    """Size tau at which the expected number of single samples is `budget`; 0 if n is below `budget`."""
    # With `steps`, tau is rounded up to a power of 2^(1/steps).
    from scipy.optimize import brentq

    if n <= budget:
        return 0.0

    def excess(exponent: float) -> float:
        count = n * np.mean(np.minimum(1, sizes / 2.0**exponent) ** 3)
        return float(np.log(count / budget))

    largest = float(np.log2(sizes.max()))
    exponent = brentq(excess, largest - 40, largest + 20, xtol=1e-3)
    return float(2.0 ** (exponent if steps is None else np.ceil(steps * exponent) / steps))


def single_sizes(sizes: np.ndarray, tau: float, several: float) -> np.ndarray:
    """Scale t of each sample, at least tau; a sample of weight T has chance several (|T| / t)³."""
    return np.asarray(np.maximum(sizes * several ** (1 / 3), tau if tau else 1e-300))
