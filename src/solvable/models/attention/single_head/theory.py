r"""A trained attention head in the limit of many dimensions: errors, rank, spectrum, stability."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.models.attention.single_head.evolution import (
    Evolution,
    Learned,
    Seen,
    fine_points,
)
from solvable.models.attention.single_head.outputs import Output
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_rule


@dataclass(frozen=True)
class SingleHeadState:
    """Theory of a trained head: S = scale (S* + noise Z - threshold)_+."""

    overlap: float  # m = Tr S S* / d
    norm: float  # q = Tr S² / d
    response: float  # Sigma, of an output to the force on it
    effective_noise: float  # delta
    threshold: float  # epsilon
    scale: float  # eta
    matrix_error: float  # |S - S*|_F² / d
    test_error: float  # squared distance of attention matrices on fresh samples, to clean labels
    noisy_test_error: float
    train_error: float
    rank_fraction: float  # rank over d
    trace: float  # Tr S / d
    objective: float  # d^-2 times the least loss: alpha train_error + lambda trace
    # growth of a small change of the fit in a step of message passing; a lone minimum: below 1
    replicon: float
    split: float  # share of samples that could be fitted in two ways
    residual: float  # relative, between both sides of the fixed point
    law: SpectralLaw  # of S* + delta Z
    conjugates: np.ndarray  # logarithms of q^, m^, Sigma^, from which a neighbour starts

    @property
    def stable(self) -> bool:
        """Whether the fixed point is that of a minimum that is alone."""
        # A jump of the fit is a slope without bound, and E|H P|² with it; a sample in a thousand is less
        # than what quadrature leaves.
        return self.replicon < 1 and self.split <= 1e-3

    def eigenvalues(self, count: int) -> np.ndarray:
        """Typical places of all eigenvalues of the learned matrix in as many dimensions, descending."""
        return self.scale * np.maximum(self.law.typical_places(count) - self.threshold, 0.0)


def solve_output(
    evolution: Evolution, start: np.ndarray | None = None, count: int | None = None
) -> SingleHeadState:
    """The trained head in the limit of many dimensions, or the minimiser with another output."""
    # argmin_S sum_mu |y_mu - sigma_beta(h_mu(S))|² + lambda d Tr S (arXiv:2509.24914), with
    # h_ab(S) = (x_a^T S x_b - delta_ab Tr S) / sqrt(d)
    count = fine_points(evolution.output.size) if count is None else count
    conjugates, learned, seen, residual = evolution.solve(start, count)
    _, points, weights = tail_rule(learned.law, np.array([learned.threshold]))
    trace = float(learned.scale * weights @ (points.x - learned.threshold))
    return SingleHeadState(
        overlap=learned.overlap,
        norm=learned.norm,
        response=learned.response,
        effective_noise=learned.law.noise,
        threshold=learned.threshold,
        scale=learned.scale,
        matrix_error=evolution.energy - 2 * learned.overlap + learned.norm,
        test_error=fresh_error(evolution, learned, 0.0, count),
        noisy_test_error=fresh_error(evolution, learned, evolution.noise, count),
        train_error=seen.train_error,
        rank_fraction=float(weights.sum()),
        trace=trace,
        objective=evolution.sample_ratio * seen.train_error + evolution.regularisation * trace,
        replicon=replicon(learned, seen),
        split=evolution.split(learned),
        residual=residual,
        law=learned.law,
        conjugates=conjugates,
    )


def fresh_error(
    evolution: Evolution, learned: Learned, noise: float, count: int | None = None
) -> float:
    """Mean squared distance of outputs on fresh samples, with this much noise in their labels."""
    output: Output = evolution.output
    seen, omega = evolution.indices(learned, count or fine_points(output.size), noise)
    return float(np.mean(np.sum((output.values(seen) - output.values(omega)) ** 2, axis=1)))


def replicon(learned: Learned, seen: Seen) -> float:
    """Growth of the square of a small change of the fit in a step of message passing."""
    # A change of S of mean square e per dimension changes outputs by v e, messages by -H P, the matrix
    # that the denoiser takes by 2 alpha E|H P|² e, and S by <D²> / Sigma^^2 times that, with
    # D_ij = (f_i - f_j) / (x_i - x_j), f = (x - epsilon)_+ (derived); at T = 1 it is <D²> / 2 alpha.
    x = learned.law.typical_places(600)
    top, low = x[x > learned.threshold], x[x <= learned.threshold]
    divided = (top[:, None] - learned.threshold) / (top[:, None] - low)
    pairs = (top.size**2 + 2 * float(np.sum(divided**2))) / x.size**2
    return pairs * seen.growth / seen.response**2
