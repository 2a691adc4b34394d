r"""Phases of quadratic networks on power-law targets: boundaries, and laws with constants."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter, NotConverged
from solvable.models.quadratic.network.dilute import dilute_state
from solvable.models.quadratic.network.phase_laws import (
    DESCRIPTIONS,
    QuadraticPhase,
    full_rank_risk,
    phase_exponents,
    thresholded_risk,
    truncated_risk,
)
from solvable.models.quadratic.network.saddle import check_not_negative
from solvable.spectra.measures import DiscreteMeasure, power_law
from solvable.spectra.roots import bracketed_root
from solvable.spectra.semicircle_tail import semicircle_tail


@dataclass(frozen=True)
class PhasePoint:
    """Phase at a point, with its leading law."""

    phase: QuadraticPhase
    description: str
    matrix_error: float  # error R according to the leading law of the phase
    exponents: tuple[float, float, float]  # exponents of n_eff, lambda and d in the leading law


@dataclass(frozen=True)
class PowerLawPhases:
    r"""Boundaries and laws for :math:`s_i=c_\gamma\sqrt d\,i^{-\gamma}`, :math:`Q^\star=1`.

    At a boundary a feature crosses the noise or the threshold, the bulk disappears, or two laws
    cross. Boundaries include constants. At finite d the error crosses over within about half a
    decade around a boundary.
    Phases of arXiv:2509.24882, Result 1; constants of (quadratic 22 to 28).

    Examples
    --------
    >>> phases = PowerLawPhases(dimension=400, exponent=1.0, label_noise=0.5)
    >>> phases.locate(10.0, 0.01).phase.value, phases.locate(1e6, 0.01).phase.value
    ('IV', 'VIb')
    """

    dimension: int
    """:math:`d`, at least 2."""
    exponent: float
    r""":math:`\gamma`, above 1/2."""
    label_noise: float
    r""":math:`\Delta\ge0`."""

    def __post_init__(self) -> None:
        if not 0.5 < self.exponent < np.inf:
            raise InvalidParameter(
                f"exponent is {self.exponent}; allowed: above 1/2. At 1/2 and below, no finite number of "
                "features contains most of the energy of the target, and the laws do not apply."
            )
        if self.dimension != int(self.dimension) or self.dimension < 2:
            raise InvalidParameter(
                f"dimension is {self.dimension}; allowed: a whole number of at least 2."
            )
        check_not_negative(label_noise=self.label_noise)

    @cached_property
    def target(self) -> DiscreteMeasure:
        """Spectrum of the target, with the weak features in bins."""
        return power_law(dimension=self.dimension, exponent=self.exponent)

    @cached_property
    def _cuts(self) -> dict[float, float]:
        return {}

    @cached_property
    def normalisation(self) -> float:
        r""":math:`c_\gamma^2=1/\sum_jj^{-2\gamma}`."""
        return float(self.target.nodes[-1] ** 2 / self.dimension)

    def strength(self, rank: float) -> float:
        r"""Strength :math:`s` at a rank, which need not be an integer."""
        return float(np.sqrt(self.normalisation * self.dimension) * rank**-self.exponent)

    def count_above(self, strength: float) -> float:
        r"""Number of features above a strength, :math:`K=(c_\gamma\sqrt d/s)^{1/\gamma}`, at most d."""
        count = (self.strength(1.0) / strength) ** (1 / self.exponent)
        return float(min(count, self.dimension))

    @property
    def plateau_samples(self) -> float:
        r"""n/d between Ia and IV, where :math:`s_1=\delta`: :math:`\frac{1+\Delta/2}{2c_\gamma^2}`."""
        return (1 + self.label_noise / 2) / (2 * self.normalisation)

    @property
    def interpolation_samples(self) -> float:
        r"""n/d between V and VIa: :math:`d/4`, to leading order for few features."""
        return self.dimension / 4

    @property
    def full_rank_samples(self) -> float:
        """n/d between VIa and VIb, above which every feature exceeds the noise."""
        # s_d = delta at Delta d^(2 gamma) / 4 c². Above d/2 the samples determine every direction.
        learned = self.label_noise * self.dimension ** (2 * self.exponent) / 4 / self.normalisation
        return max(learned, self.dimension / 2)

    @cached_property
    def overfitting_samples(self) -> float:
        """n/d between IV and V without regularisation, where the laws cross; infinite without noise."""
        # The order is d^(4 gamma / (14 gamma - 5)).
        if self.label_noise == 0:
            return np.inf

        def gap(log_samples: float) -> float:
            samples = float(np.exp(log_samples))
            ratio = samples / self.dimension
            bulk = noise_only(sample_ratio=ratio, label_noise=self.label_noise).matrix_error
            return float(np.log(bulk / self._truncated(samples)))

        low, high = np.log(1e-6), np.log(self.interpolation_samples * (1 - 1e-9))
        return float(np.exp(bracketed_root(gap, low, high, absolute=1e-12)))

    def _truncated(self, samples: float) -> float:
        return truncated_risk(
            exponent=self.exponent,
            normalisation=self.normalisation,
            effective_samples=samples,
            label_noise=self.label_noise,
        )

    def cut_regularisation(self, effective_samples: float) -> float:
        """Regularisation at which the bulk disappears, to first order in the learned features."""
        # The limit is 4 sqrt(alpha Delta) for 1 << K << d learned features.
        if effective_samples not in self._cuts:
            ratio = effective_samples / self.dimension
            state = dilute_state(
                self.target, sample_ratio=ratio, label_noise=self.label_noise, shrinkage=2.0
            )
            self._cuts[effective_samples] = state.regularisation
        return self._cuts[effective_samples]

    def collapse_regularisation(self, effective_samples: float) -> float:
        """Regularisation above which nothing is learned."""
        # lambda = 4 alpha lambda_max(S* + delta Z), delta² = (1 + Delta/2) / 2 alpha: the largest is
        # s_1 + delta² / s_1 if s_1 > delta, else 2 delta.
        ratio = effective_samples / self.dimension
        noise = float(np.sqrt((1 + self.label_noise / 2) / (2 * ratio)))
        first = max(self.strength(1.0), noise)
        return 4 * ratio * (first + noise**2 / first)

    def all_kept_regularisation(self, effective_samples: float) -> float:
        r"""Between II and III: :math:`4\alpha s_d=4c_\gamma n_\mathrm{eff}d^{-\gamma-1/2}`."""
        return 4 * effective_samples / self.dimension * self.strength(self.dimension)

    def shift_regularisation(self, effective_samples: float) -> float:
        r"""Regularisation between III and VIb, where :math:`b=\delta`: :math:`2\sqrt{\alpha\Delta}`."""
        return float(2 * np.sqrt(effective_samples / self.dimension * self.label_noise))

    def peak_window(self, regularisation: float) -> tuple[float, float]:
        """Range of n/d in which the regularisation limits the peak; empty without a peak."""
        # The range in which (Delta/2) / |4 alpha - 1|, the law on both sides of the peak, exceeds the
        # error at alpha = 1/4. It is empty if this error is below the label noise.
        quarter = self.interpolation_samples
        if regularisation == 0 or self.label_noise == 0:
            return quarter, quarter
        top = noise_only(
            sample_ratio=0.25, label_noise=self.label_noise, regularisation=regularisation
        ).matrix_error
        if top <= self.label_noise:
            return quarter, quarter
        half_width = self.label_noise / (2 * top)
        return quarter * (1 - half_width), quarter * (1 + half_width)

    def phase(self, effective_samples: float, regularisation: float) -> QuadraticPhase:
        """Return the phase at a point."""
        check_positive(effective_samples=effective_samples)
        check_not_negative(regularisation=regularisation)
        n = effective_samples
        # A regularisation just below the cut line cuts most of the bulk. Phase IV then extends to the
        # samples of V and VIa, if the error of the bulk is below the law of IV or b exceeds delta.
        if regularisation >= self.collapse_regularisation(n):
            return QuadraticPhase.COLLAPSE
        if n < self.plateau_samples:
            return QuadraticPhase.PLATEAU
        if n >= self.full_rank_samples:
            if regularisation >= self.all_kept_regularisation(n):
                return QuadraticPhase.THRESHOLDED
            shifted = regularisation > self.shift_regularisation(n)
            return QuadraticPhase.SHIFTED if shifted else QuadraticPhase.FULL_RANK
        if regularisation >= self.cut_regularisation(n):
            return QuadraticPhase.THRESHOLDED
        if self.label_noise == 0:
            return QuadraticPhase.BENIGN
        low, high = self.peak_window(regularisation)
        if low < n < high:
            return QuadraticPhase.PEAK
        # A small value replaces 0, as no finite limit exists at n = d² / 4.
        bulk = noise_only(
            sample_ratio=n / self.dimension,
            label_noise=self.label_noise,
            regularisation=regularisation or 1e-12,
        )
        if n >= self.interpolation_samples:
            kept = bulk.threshold < bulk.effective_noise
            return QuadraticPhase.NOISY_BULK if kept else QuadraticPhase.BENIGN
        harmful = bulk.matrix_error > self._truncated(n)
        return QuadraticPhase.OVERFITTING if harmful else QuadraticPhase.BENIGN

    def locate(self, effective_samples: float, regularisation: float) -> PhasePoint:
        """Return the phase at a point with its leading law; see :meth:`phase`."""
        phase = self.phase(effective_samples, regularisation)
        return PhasePoint(
            phase,
            DESCRIPTIONS[phase],
            self.law(phase, effective_samples, regularisation),
            phase_exponents(phase, exponent=self.exponent, noiseless=self.label_noise == 0),
        )

    def law(self, phase: QuadraticPhase, effective_samples: float, regularisation: float) -> float:
        """Evaluate the leading law of a phase at a point, which may lie in another phase."""
        ratio, noise = effective_samples / self.dimension, self.label_noise
        if phase is QuadraticPhase.COLLAPSE:
            return 1.0
        if phase is QuadraticPhase.BENIGN:
            return self._truncated(effective_samples)
        if phase is QuadraticPhase.THRESHOLDED:
            return thresholded_risk(
                dimension=self.dimension,
                exponent=self.exponent,
                normalisation=self.normalisation,
                threshold=regularisation / (4 * ratio),
            )
        if phase in (QuadraticPhase.SHIFTED, QuadraticPhase.FULL_RANK):
            return full_rank_risk(
                sample_ratio=ratio, label_noise=noise, regularisation=regularisation
            )
        if phase is QuadraticPhase.PEAK:
            return interpolation_peak_risk(regularisation=regularisation, label_noise=noise)
        return noise_only(
            sample_ratio=ratio,
            label_noise=noise,
            regularisation=regularisation,
            unresolved=1.0 if phase is QuadraticPhase.PLATEAU else 0.0,
        ).matrix_error

    def optimal_regularisation(self, effective_samples: float) -> float:
        """Leading law of the best regularisation (quadratic 28); exact: `optimal_regularisation`."""
        # 4 sqrt(alpha Delta) (1 - [(15 pi / 2) gamma / (1 + gamma) K / d]^(2/5) / 2): near the cut line
        # the learned noise grows as 16 (2 - b/delta)^(7/2) / 105 pi and the error of the features falls
        # linearly. At d = 400 the optimum is near 0.5 of the cut line. In VIb the value is 0, as the
        # error is flat below 4 alpha s_d.
        check_positive(effective_samples=effective_samples)
        if effective_samples >= self.full_rank_samples:
            return 0.0
        ratio = effective_samples / self.dimension
        cut = float(4 * np.sqrt(ratio * self.label_noise))
        if cut == 0:
            return 0.0
        rank = self.count_above(np.sqrt(self.label_noise / (4 * ratio))) / self.dimension
        gap = (7.5 * np.pi * self.exponent / (1 + self.exponent) * rank) ** 0.4
        return cut * max(1 - float(gap) / 2, 0.0)


def quadratic_phase(
    *,
    dimension: int,
    exponent: float,
    effective_samples: float,
    regularisation: float,
    label_noise: float,
) -> PhasePoint:
    r"""Return the phase of a quadratic network on a power-law target; see :class:`PowerLawPhases`.

    Parameters
    ----------
    dimension, exponent : int and float
        :math:`d` and :math:`\gamma`.
    effective_samples, regularisation, label_noise : float
        :math:`n_\mathrm{eff}=n/d`, :math:`\tilde\lambda` and :math:`\Delta`.

    Returns
    -------
    PhasePoint
        Phase, error by its leading law, and exponents.

    Examples
    --------
    >>> point = quadratic_phase(
    ...     dimension=1000, exponent=1.0, effective_samples=1e6, regularisation=0.0, label_noise=0.5
    ... )
    >>> point.phase.value, round(point.matrix_error, 7)
    ('VIb', 0.0001251)
    """
    phases = PowerLawPhases(dimension, exponent, label_noise)
    return phases.locate(effective_samples, regularisation)


@dataclass(frozen=True)
class NoiseState:
    """Prediction of a network trained on labels of pure noise."""

    effective_noise: float
    threshold: float
    matrix_error: float


def noise_only(
    *, sample_ratio: float, label_noise: float, regularisation: float = 0.0, unresolved: float = 0.0
) -> NoiseState:
    """Exact solution for no target, or for a target of which nothing is learned."""
    variance = label_noise / 2 + unresolved  # above 0
    # delta² = (Delta/2 + R_0) / (2 alpha - j(a)),  lambda = 4 a delta (alpha - A(a)),  b = a delta,
    # R = R_0 + delta² j(a)  (quadratic 22): the energy R_0 that is not learned acts as label noise
    # 2 R_0. For a >= 2 nothing is fitted. Without regularisation A(a) = alpha below alpha = 1/4 (the
    # interpolator of least trace), and a = 0 above.
    alpha = sample_ratio
    null = float(np.sqrt(variance / (2 * alpha)))
    if regularisation >= 8 * alpha * null:
        return NoiseState(null, regularisation / (4 * alpha), unresolved)
    low = 0.0
    if alpha < 0.25:
        low = bracketed_root(
            lambda a: semicircle_tail(a).slope / alpha - 1, 0.0, 2.0, absolute=1e-15
        )

    def noise(a: float) -> float:
        room = 2 * alpha - semicircle_tail(a).second
        return float(np.sqrt(variance / room)) if room > 1e-13 * alpha else np.inf

    def excess(a: float) -> float:
        free = 4 * a * (alpha - semicircle_tail(a).slope)
        return (free * noise(a) if free > 0 else 0.0) - regularisation

    if low == 0 and noise(0.0) == np.inf and regularisation == 0:
        raise NotConverged(
            "the error has no finite limit at the sample ratio 1/4 without regularisation (interpolation "
            "peak). Use a regularisation above 0.",
            {"sample_ratio": alpha},
        )
    a = low if regularisation == 0 else bracketed_root(excess, low, 2.0)
    delta = noise(a)
    return NoiseState(delta, a * delta, unresolved + delta**2 * semicircle_tail(a).second)


def interpolation_peak_risk(*, regularisation: float, label_noise: float) -> float:
    """Height of the error at the interpolation peak (quadratic 24)."""
    # R = (3 pi/8)^(2/3) (Delta/2)^(4/3) lambda^(-2/3) / 2: limit of `noise_only` at alpha = 1/4 for small
    # lambda, where 1/epsilon² = 8 lambda / 3 pi delta. With a target the peak stays finite at lambda = 0.
    variance = label_noise / 2
    return float(0.5 * (3 * np.pi / 8) ** (2 / 3) * variance ** (4 / 3) / regularisation ** (2 / 3))
