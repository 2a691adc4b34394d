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
    r"""What the theory says of a trained head: :math:`\hat S=\eta(S^\star+\delta Z-\epsilon)_+`.

    Attributes
    ----------
    overlap, norm : float
        :math:`m=\frac1d\mathrm{Tr}\hat SS^\star` and :math:`q=\frac1d\mathrm{Tr}\hat S^2`.
    response : float
        :math:`\Sigma`, of an output to the force on it.
    effective_noise, threshold, scale : float
        :math:`\delta`, :math:`\epsilon` and :math:`\eta`.
    matrix_error : float
        :math:`\frac1d\|\hat S-S^\star\|_F^2`.
    test_error, noisy_test_error : float
        Mean squared distance of attention matrices on fresh samples, to labels without and with noise.
    train_error : float
        The same on the samples of training.
    rank_fraction : float
        Rank of :math:`\hat S` over d.
    trace : float
        :math:`\frac1d\mathrm{Tr}\hat S`.
    objective : float
        :math:`d^{-2}` times the least loss, :math:`\alpha` times the training error and
        :math:`\tilde\lambda` times the trace.
    replicon : float
        Growth of a small change of the fit in a step of message passing: at a minimum that is alone
        below 1.
    split : float
        Share of samples that could be fitted in two ways, between which the fit jumps.
    residual : float
        What is left between both sides of the fixed point, relative.
    law : SpectralLaw
        Of :math:`S^\star+\delta Z`.
    conjugates : ndarray of shape (3,)
        Logarithms of :math:`\hat q,\hat m,\hat\Sigma`, from which a neighbour starts.
    """

    overlap: float
    norm: float
    response: float
    effective_noise: float
    threshold: float
    scale: float
    matrix_error: float
    test_error: float
    noisy_test_error: float
    train_error: float
    rank_fraction: float
    trace: float
    objective: float
    replicon: float
    split: float
    residual: float
    law: SpectralLaw
    conjugates: np.ndarray

    @property
    def stable(self) -> bool:
        """Whether the fixed point is that of a minimum that is alone."""
        # A jump of the fit is a slope without bound, and E|H P|^2 with it; a sample in a thousand is less
        # than what quadrature leaves.
        return self.replicon < 1 and self.split <= 1e-3

    def eigenvalues(self, count: int) -> np.ndarray:
        """Typical places of all eigenvalues of the learned matrix in as many dimensions, descending."""
        return self.scale * np.maximum(self.law.typical_places(count) - self.threshold, 0.0)


def solve_output(
    evolution: Evolution, start: np.ndarray | None = None, count: int | None = None
) -> SingleHeadState:
    """The trained head in the limit of many dimensions, or the minimiser with another output."""
    # argmin_S sum_mu |y_mu - sigma_beta(h_mu(S))|^2 + lambda d Tr S, h_ab(S) = (x_a^T S x_b - delta_ab Tr S) /
    # sqrt(d), S = W W^T / sqrt(p d) of any width from the learned rank on (arXiv:2509.24914)
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
    # that the denoiser takes by 2 alpha E|H P|^2 e, and S by <D^2> / Sigma^^2 times that, with
    # D_ij = (f_i - f_j) / (x_i - x_j), f = (x - epsilon)_+ (derived); at T = 1 it is <D^2> / 2 alpha.
    x = learned.law.typical_places(600)
    top, low = x[x > learned.threshold], x[x <= learned.threshold]
    divided = (top[:, None] - learned.threshold) / (top[:, None] - low)
    pairs = (top.size**2 + 2 * float(np.sum(divided**2))) / x.size**2
    return pairs * seen.growth / seen.response**2
