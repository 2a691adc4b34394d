"""Errors, rank, spectrum and stability of a trained attention head in the limit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.models.attention.single_head.evolution import (
    Evolution,
    Learned,
    Seen,
    fine_points,
    kept,
)
from solvable.models.attention.single_head.outputs import Output
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_rule


@dataclass(frozen=True)
class SingleHeadState:
    """State of a trained head in the limit: S = scale (S* + noise Z - threshold)_+ (attention 9)."""

    overlap: float  # overlap m = Tr S S* / d
    norm: float  # squared norm q = Tr S² / d
    response: float  # response Sigma of an index to the force on this index
    effective_noise: float  # standard deviation delta of the effective noise
    threshold: float  # threshold epsilon on the eigenvalues
    scale: float  # scale eta of the learned eigenvalues
    matrix_error: float  # squared error |S - S*|_F² / d of the learned matrix
    test_error: float  # squared error of the attention matrix on noiseless test labels
    noisy_test_error: float
    train_error: float
    rank_fraction: float  # learned rank over d
    trace: float  # trace of the learned matrix, Tr S / d
    objective: float  # minimum of the loss over d², alpha train_error + lambda (trace or norm)
    replicon: (
        float  # growth factor of a small change's square per message-passing step (attention 13)
    )
    split: float  # fraction of samples whose proximal problem has two minima
    residual: float  # relative residual of the fixed point
    law: SpectralLaw  # eigenvalue density of S* + delta Z
    conjugates: np.ndarray  # logarithms of the conjugates q^, m^, Sigma^

    @property
    def stable(self) -> bool:
        """Return True if the fixed point describes a unique minimum."""
        # Samples with two proximal minima make the replicon infinite. Up to 0.1 % of such samples count
        # as 0, because this fraction is below the quadrature error.
        return self.replicon < 1 and self.split <= 1e-3

    def eigenvalues(self, count: int) -> np.ndarray:
        """Predicted quantiles of the eigenvalues of the learned matrix, descending."""
        return self.scale * kept(self.law.typical_places(count), self.threshold)


def solve_output(
    evolution: Evolution, start: np.ndarray | None = None, count: int | None = None
) -> SingleHeadState:
    """Solve state evolution for a trained head, or for any other output function."""
    # The learned S minimises sum_mu |y_mu - sigma_beta(h_mu(S))|² + lambda d Tr S   (attention 8;
    # arXiv:2509.24914). Its error is E = Q - 2 m + q, its rank over d is int_epsilon mu_delta
    # (attention 12).
    count = fine_points(evolution.output.size) if count is None else count
    conjugates, learned, seen, residual = evolution.solve(start, count)
    _, points, weights = tail_rule(learned.law, np.array([learned.threshold]))
    trace = float(learned.scale * weights @ kept(points.x, learned.threshold))
    penalised = learned.norm if evolution.ridge else trace
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
        objective=evolution.sample_ratio * seen.train_error + evolution.regularisation * penalised,
        replicon=replicon(learned, seen),
        split=evolution.split(learned),
        residual=residual,
        law=learned.law,
        conjugates=conjugates,
    )


def fresh_error(
    evolution: Evolution, learned: Learned, noise: float, count: int | None = None
) -> float:
    """Mean squared test error at a given label noise (attention 12)."""
    output: Output = evolution.output
    seen, omega = evolution.indices(learned, count or fine_points(output.size), noise)
    return float(np.mean(np.sum((evolution.labels(seen) - output.values(omega)) ** 2, axis=1)))


def replicon(learned: Learned, seen: Seen) -> float:
    """Factor by which a small change's square grows in one step of message passing (attention 13)."""
    # replicon 2 alpha (eta / m^)² E|dg/domega|² <D_ij²> with D_ij = (f_i - f_j) / (x_i - x_j) and
    # f = (x - epsilon)_+   (attention 13); for one linear token this is <D²> / (2 alpha)
    x = learned.law.typical_places(600)
    top, low = x[x > learned.threshold], x[x <= learned.threshold]
    divided = (top[:, None] - learned.threshold) / (top[:, None] - low)
    pairs = (top.size**2 + 2 * float(np.sum(divided**2))) / x.size**2
    return pairs * seen.growth * (learned.scale / seen.overlap) ** 2
