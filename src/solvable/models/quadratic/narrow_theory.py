r"""Saddle point of narrow quadratic networks."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from solvable.errors import InvalidParameter, NotConverged
from solvable.models.quadratic.network.saddle import check_problem
from solvable.models.quadratic.network.theory import QuadraticState, solve_quadratic
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.functionals import tail_rule, truncated_moments
from solvable.spectra.measures import Measure, as_measure, second_moment
from solvable.spectra.roots import bracketed_root


@dataclass(frozen=True, kw_only=True)
class NarrowState(QuadraticState):
    """Prediction of a network of few hidden units (quadratic 29)."""

    width_ratio: float  # kappa = p / d
    cut: float  # max(b, omega), below which nothing is learned

    def cut_in(self, law: SpectralLaw, threshold: float) -> float:
        """Eigenvalue below which nothing is learned, for a spectral law and a threshold b."""
        # A width limits the number of eigenvalues. As eigenvalues are rigid, the mean of a sum over the p
        # largest differs from the mean of the sum above omega by the second order in 1/d.
        return width_cut(law, self.width_ratio) if self.width_limited else threshold


@dataclass(frozen=True)
class CutMoments:
    """Integrals of x^k and x^k h over the spectral law above a cut."""

    cut: float
    mass: float
    first: float
    second: float
    hilbert: float
    hilbert_first: float

    def freedom(self, threshold: float) -> float:
        """Degrees of freedom of the fit over d²."""
        # (quadratic 29)  A = int_omega h(x) (x - b) mu_delta
        return self.hilbert_first - threshold * self.hilbert

    def error(self, energy: float, variance: float, threshold: float) -> float:
        """Error R of the learned matrix (quadratic 29)."""
        # R = Q* + 4 delta² A - int_omega (x² - b²) mu_delta
        kept = self.second - threshold**2 * self.mass
        return energy + 4 * variance * self.freedom(threshold) - kept


def cut_moments(law: SpectralLaw, cut: float) -> CutMoments:
    """Compute the integrals in the equations of a network with a cut spectrum."""
    # For S = sum over i <= p of (nu_i - b) v_i v_i^T the divergence over d² tends to
    #     kappa²/2 + int_{x > omega} int_{y < omega} (x - b) / (x - y) = int_omega h(x) (x - b) = A:
    # each pair of learned eigenvalues contributes 1, and the principal value of these pairs in the last
    # integral is kappa²/2. The jump at omega contributes nothing, because p is fixed.
    _, points, weights = tail_rule(law, np.array([cut]))
    hilbert = (points.x - points.u) / law.variance
    return CutMoments(
        cut=float(cut),
        mass=float(weights.sum()),
        first=float(weights @ points.x),
        second=float(weights @ points.x**2),
        hilbert=float(weights @ hilbert),
        hilbert_first=float(weights @ (hilbert * points.x)),
    )


def width_cut(law: SpectralLaw, width_ratio: float) -> float:
    """Eigenvalue above which a given share of the spectral law lies; in a gap, the middle of the gap."""
    if width_ratio >= 1:
        return float(law.edges[0, 0])
    above = np.cumsum(law.masses[::-1])[::-1]
    component = int(np.searchsorted(-above, -width_ratio * (1 + 1e-9), side="right")) - 1
    component = max(component, 0)
    rest = above[component + 1] if component + 1 < above.size else 0.0
    if width_ratio - rest <= 1e-9 * width_ratio:
        return float((law.edges[component, 1] + law.edges[component + 1, 0]) / 2)
    low, high = law.edges[component]

    def excess(place: float) -> float:
        return float(truncated_moments(law, place).mass[0]) - width_ratio

    if excess(float(low)) <= 0:
        return float(low)
    return bracketed_root(excess, low, high, absolute=1e-13 * law.noise, relative=1e-14)


def instability(state: NarrowState, dimension: int) -> float:
    """Growth of a perturbation in one step of message passing (quadratic 30); stable up to 1."""
    # <D²> / 2 alpha: a perturbation of S of mean square q is noise of variance q / 2 alpha in M, and
    # returns multiplied by D_ij = (f_i - f_j) / (x_i - x_j). A convex problem has D <= 1 and a growth of
    # at most A / alpha. The jump of f at a cut inside the bulk makes <D²> grow as log d, which
    # creates many minima. The sum below uses typical eigenvalues at this d.
    x = state.law.typical_places(dimension)
    kept = min(round(state.rank_fraction * dimension), dimension)
    top, low = x[:kept], x[kept:]
    divided = (top[:, None] - state.threshold) / (top[:, None] - low)
    pairs = kept**2 + 2 * float(np.sum(divided**2))
    return pairs / dimension**2 / (2 * state.sample_ratio)


@dataclass
class _Problem:
    target: Measure
    width_ratio: float
    ratio: float
    label_noise: float
    penalty: float

    def at(self, noise: float) -> tuple[SpectralLaw, CutMoments, float, float]:
        """Law, integrals, threshold and error at an effective noise and the given penalty."""
        law = SpectralLaw(self.target, noise=noise)
        width_limited = cut_moments(law, width_cut(law, self.width_ratio))

        def moments_at(b: float) -> CutMoments:
            return width_limited if b <= width_limited.cut else cut_moments(law, b)

        def excess(b: float) -> float:
            # lambda = 4 b (alpha - A)
            free = self.ratio - moments_at(b).freedom(b)
            return free - (self.penalty / (4 * b) if self.penalty else 0.0)

        b = self.penalty / (4 * self.ratio)
        if (at_low := excess(b)) < 0:
            high = max(float(law.edges[-1, 1]), b) * (1 + 1e-9)
            ends = (at_low, excess(high))
            b = bracketed_root(excess, b, high, absolute=1e-15 * high, ends=ends)
        moments = moments_at(b)
        return law, moments, b, moments.error(second_moment(self.target), law.variance, b)

    def imbalance(self, log_noise: float) -> float:
        """Logarithm of (R + Delta/2) / 2 alpha delta², positive below a solution."""
        noise = float(np.exp(log_noise))
        error = self.at(noise)[-1]
        return float(
            np.log(max(error + self.label_noise / 2, 1e-300)) - np.log(2 * self.ratio * noise**2)
        )

    def state(self, noise: float) -> NarrowState:
        """Compute the prediction at a solution."""
        law, moments, b, error = self.at(noise)
        free = max(self.ratio - moments.freedom(b), 0.0)
        squares = 4 * law.variance * free**2
        trace = moments.first - b * moments.mass
        return NarrowState(
            width_ratio=self.width_ratio,
            sample_ratio=self.ratio,
            label_noise=self.label_noise,
            regularisation=self.penalty,
            effective_noise=noise,
            threshold=b,
            cut=moments.cut,
            matrix_error=2 * self.ratio * law.variance - self.label_noise / 2,
            residual=error - 2 * self.ratio * law.variance + self.label_noise / 2,
            train_error=squares / self.ratio,
            test_error=4 * self.ratio * law.variance,
            trace=trace,
            objective=squares + self.penalty * trace,
            rank_fraction=moments.mass,
            degrees_of_freedom=moments.freedom(b),
            width_limited=moments.cut > b,
            law=law,
        )


def solve_narrow(
    target: Measure | np.ndarray,
    *,
    width_ratio: float,
    sample_ratio: float,
    label_noise: float,
    regularisation: float,
) -> NarrowState:
    r"""Predict a trained network of any width :math:`p=\kappa d`.

    With :math:`\hat S` the best rank-p part of :math:`(S^\star+\delta Z-b)_+`, which is cut at
    :math:`\max(b,\omega)`, :math:`\mu_\delta([\omega,\infty))=\kappa`, and
    :math:`A=\int_{\max(b,\omega)}^\infty\mu_\delta(dx)\,h(x)(x-b)`,

    .. math:: \frac1\epsilon=4(\alpha-A),\quad b=\tilde\lambda\epsilon,\quad
        R=Q^\star+4\delta^2A-\int_{\max(b,\omega)}^\infty\mu_\delta(dx)(x^2-b^2),\quad
        R+\tfrac\Delta2=2\alpha\delta^2.

    The problem is not convex: the equations assume a network that finds the best p directions. They are
    those of arXiv:2606.28242 with integrals in place of drawn matrices (quadratic 29).

    Parameters
    ----------
    target : Measure or array of shape (m,)
        :math:`\mu^\star`; for few units pass all d eigenvalues.
    width_ratio, sample_ratio, label_noise, regularisation : float
        :math:`\kappa>0`, :math:`\alpha=n/d^2`, :math:`\Delta` and
        :math:`\tilde\lambda=\sqrt\kappa\lambda`.

    Returns
    -------
    NarrowState
        The solution of least objective.

    Examples
    --------
    >>> state = solve_narrow(
    ...     np.array([3.0] + [0.0] * 19), width_ratio=0.05, sample_ratio=1.0, label_noise=0.5,
    ...     regularisation=0.1,
    ... )
    >>> state.width_limited, round(state.matrix_error, 4)
    (True, 0.0129)
    """
    check_problem(sample_ratio=sample_ratio, label_noise=label_noise, regularisation=regularisation)
    if not 0 < width_ratio < np.inf:
        raise InvalidParameter(f"width_ratio is {width_ratio}; allowed: a finite number above 0.")
    measure = as_measure(target)
    problem = _Problem(measure, width_ratio, sample_ratio, label_noise, regularisation)
    wide = solve_quadratic(
        measure, sample_ratio=sample_ratio, label_noise=label_noise, regularisation=regularisation
    )
    if wide.rank_fraction <= width_ratio:
        return problem.state(wide.effective_noise)
    energy = second_moment(measure)
    high = 0.5 * np.log((energy + label_noise / 2) / (2 * sample_ratio))
    low = 0.5 * np.log(max(label_noise / (4 * sample_ratio), 1e-20 * np.exp(2 * high)))
    # Grid of noises to search for a sign change of the outer equation.
    grid = list(np.linspace(low, high, 12))
    gaps = [problem.imbalance(place) for place in grid]
    while gaps[-1] > 0 and grid[-1] < high + 12:
        grid.append(grid[-1] + 0.5)
        gaps.append(problem.imbalance(grid[-1]))
    signs = zip(pairwise(grid), pairwise(gaps), strict=True)
    roots = [
        float(np.exp(bracketed_root(problem.imbalance, *ends, absolute=1e-12, ends=values)))
        for ends, values in signs
        if values[0] > 0 >= values[1]
    ]
    if not roots:
        raise NotConverged(
            "the equations of the narrow network have no solution with an error below that of learning "
            "nothing. Use a larger regularisation or label noise.",
            {"sample_ratio": sample_ratio, "width_ratio": width_ratio},
        )
    return min((problem.state(root) for root in roots), key=lambda state: state.objective)
