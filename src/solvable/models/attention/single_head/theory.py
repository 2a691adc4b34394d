r"""A trained attention head in the limit of many dimensions: errors, rank, spectrum, stability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from solvable.errors import InvalidParameter
from solvable.models.attention.single_head.evolution import (
    Evolution,
    Learned,
    Seen,
    fine_points,
)
from solvable.models.attention.single_head.outputs import Output, SoftmaxOutput
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_rule
from solvable.spectra.measures import Measure, discrete


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


def solve_single_head(
    target: Measure | np.ndarray,
    *,
    sample_ratio: float,
    noise: float,
    regularisation: float,
    tokens: int = 2,
    inverse_temperature: float = 1.0,
    start: np.ndarray | None = None,
) -> SingleHeadState:
    r"""Trained attention head in the limit of many dimensions.

    The head minimises, over :math:`S=WW^\top/\sqrt{pd}`,

    .. math:: \sum_{\mu=1}^n\big\|y_\mu-\sigma_\beta(h_\mu(S))\big\|_F^2+\tilde\lambda\,d\,\mathrm{Tr}S,
              \qquad h_{ab}(S)=\frac{x_a^\top Sx_b-\delta_{ab}\mathrm{Tr}S}{\sqrt d},

    with labels :math:`y=\sigma_\beta(h(S^\star)+\xi)`, :math:`\xi_{aa}\sim N(0,\Delta)`,
    :math:`\xi_{ab}\sim N(0,\Delta/2)` symmetric.

    Notes
    -----
    Independent of the width p from the learned rank on. Averages over indices are taken at 4096 to 16384
    scrambled Sobol points, the same at every call; errors are good to a few parts in a thousand
    where the state is stable. arXiv:2509.24914, the form of its equations derived. Backed by
    ``tests/models/attention/single_head/test_theory.py`` (the convex case of one token, trained heads).
    """
    if tokens < 2:
        raise InvalidParameter(
            f"tokens is {tokens}; allowed: at least 2. The softmax of one number is 1 and tells nothing."
        )
    checks = {
        "sample_ratio": sample_ratio,
        "regularisation": regularisation,
        "inverse_temperature": inverse_temperature,
    }
    for name, value in checks.items():
        if not 0 < value < np.inf:
            raise InvalidParameter(f"{name} is {value}; allowed: a finite number above 0.")
    if not 0 <= noise < np.inf:
        raise InvalidParameter(f"noise is {noise}; allowed: a finite number of at least 0.")
    measure = discrete(np.asarray(target)) if isinstance(target, np.ndarray | Sequence) else target
    output = SoftmaxOutput(int(tokens), float(inverse_temperature))
    return solve_output(Evolution(output, measure, sample_ratio, noise, regularisation), start)


def solve_output(
    evolution: Evolution, start: np.ndarray | None = None, count: int | None = None
) -> SingleHeadState:
    """The state of any output function."""
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
