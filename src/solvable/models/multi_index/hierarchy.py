"""Thresholds and error curves of hierarchical models: regimes, exponents and prefactors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter
from solvable.links import Link, make_link
from solvable.message_passing.channels import AdditiveChannel
from solvable.models.multi_index.exponents import exponents_of
from solvable.models.multi_index.overlaps import mapped_labels
from solvable.operators.labels import LabelMap
from solvable.spectra.label_emergence import emergence_ratio


def hierarchical_thresholds(
    channel: AdditiveChannel, label_map: LabelMap | str | None = None
) -> np.ndarray:
    r"""Compute the ratio n/d above which second moments find each feature of an additive model.

    .. math:: \alpha_k^{\rm opt}=\frac1{E[G_{kk}(y)^2]},\qquad
        \alpha_k=\frac1{E[T^2/(\bar\lambda-T)^2]}\;\text{where}\;
        \alpha_kE\Big[\frac{T\,G_{kk}}{\bar\lambda-T}\Big]=1 .

    Parameters
    ----------
    channel : AdditiveChannel
        Links, amplitudes and noise of the additive model.
    label_map : str or callable, optional
        Map from labels to sample weights; by default the best map for each feature.

    Returns
    -------
    ndarray of shape (p,)
        Threshold :math:`n/d` of each feature; infinite if this map never finds the feature.

    Notes
    -----
    Takes about 0.25 s for 128 features, without Monte Carlo. For links that are not even, moments of
    pairs of features are ignored. Equations 6 and 21 of ``docs/derivations/multi-index.md``; backed by
    ``tests/models/multi_index/test_hierarchy.py``.

    Examples
    --------
    >>> from solvable.models.multi_index.target import power_law_channel
    >>> channel = power_law_channel("he2", features=12, decay=1.0, noise=0.5)
    >>> hierarchical_thresholds(channel)[[0, 1, 3]].round(2)
    array([ 0.86,  3.91, 14.47])
    >>> hierarchical_thresholds(channel, "tanh")[[0, 1, 3]].round(2)
    array([ 1.21,  4.34, 16.09])
    """
    moments = channel.moments
    if label_map is None:
        return moments.weak_recovery_ratio  # best map: 1 / E[G_kk²]   (multi-index 6)
    # given map: 1 / alpha_k = E[T² / (lambda - T)²] = E[T G_kk / (lambda - T)]   (multi-index 21)
    return emergence_ratio(moments.law(mapped_labels(moments, label_map)))


@dataclass(frozen=True)
class ScalingLaw:
    """Power law alpha_k = C k^(2 gamma beta) for thresholds of features with amplitudes k^-gamma."""

    decay: float  # exponent gamma of the amplitudes
    exponent: int  # noise sensitivity exponent beta, 1 or 2
    prefactor: float  # prefactor C of the thresholds

    def thresholds(self, features: int) -> np.ndarray:
        """Return the threshold n/d of each feature, shape (p,)."""
        k = np.arange(1, features + 1, dtype=np.float64)
        return np.asarray(self.prefactor * k ** (2 * self.decay * self.exponent))

    def overlaps(self, features: int, sample_ratio: float) -> np.ndarray:
        """Return the squared overlap of each feature, shape (p,)."""
        # squared overlap rho_k² = (1 - alpha_k / alpha)_+   (multi-index 22)
        return np.asarray(np.maximum(1 - self.thresholds(features) / sample_ratio, 0.0))

    def subspace_error(self, features: int, sample_ratio: float) -> float:
        """Return the weighted subspace error at a finite number of features."""
        amplitudes = np.arange(1, features + 1, dtype=np.float64) ** -self.decay
        return float(amplitudes**2 @ (1 - self.overlaps(features, sample_ratio)))

    def regime(self, features: int, sample_ratio: float) -> str:
        """Return the name of the regime: "plateau", "power law" or "parametric"."""
        first, last = self.thresholds(features)[[0, -1]]
        if sample_ratio <= first:
            return "plateau"
        return "power law" if sample_ratio < last else "parametric"

    @property
    def error_exponent(self) -> float:
        """Power of n in the error between the first and the last threshold, for decay > 1/2."""
        # error ~ alpha^(-(1 - 1/(2 gamma)) / beta)   (multi-index 23; arXiv:2602.05846, Theorem 3.2)
        return -(1 - 1 / (2 * self.decay)) / self.exponent

    def asymptote(self, features: int, sample_ratio: float) -> float:
        """Return the error's leading term in the regime at this n/d, for a finite number of features."""
        gamma, beta, ratio = self.decay, self.exponent, sample_ratio / self.prefactor
        k = np.arange(1, features + 1, dtype=np.float64)
        name = self.regime(features, sample_ratio)
        if name == "plateau":
            return float(np.sum(k ** (-2 * gamma)))
        if name == "parametric":
            # above all thresholds: sum_k a_k² alpha_k / alpha, which is C p / alpha for beta = 1
            return float(np.sum(k ** (2 * gamma * (beta - 1)))) / ratio
        # With alpha_m = alpha, the found features k < m leave the error
        # int_0^m k^(-2 gamma) alpha_k / alpha dk, and the other features leave int_m^p k^(-2 gamma) dk.
        m = ratio ** (1 / (2 * gamma * beta))
        below = m ** (1 - 2 * gamma) / (2 * gamma * (beta - 1) + 1)
        above = (m ** (1 - 2 * gamma) - features ** (1 - 2 * gamma)) / (2 * gamma - 1)
        return float(below + above)


def hierarchical_law(
    link: str,
    *,
    features: int,
    decay: float,
    noise: float,
    label_map: LabelMap | str = "tanh",
) -> ScalingLaw:
    r"""Compute exponent and prefactor of the thresholds of features with amplitudes k^-gamma.

    .. math:: \alpha_k=\frac{\mathrm{Var}\,T}{s_k^2}\simeq
        \frac{(\beta!)^2\,\mathrm{Var}\,T}{c_\beta^2E[T^{(\beta)}]^2}k^{2\gamma\beta},\qquad
        s_k=E[T(y)(z_k^2-1)].

    Parameters
    ----------
    link : str
        Name or formula of the even link of all features.
    features : int
        Number :math:`p` of features, at least 1.
    decay : float
        Exponent :math:`\gamma>1/2` of the amplitudes :math:`k^{-\gamma}`.
    noise : float
        Variance :math:`\Delta` of the label noise.
    label_map : str or callable
        Map from labels to sample weights.

    Returns
    -------
    ScalingLaw
        Exponent and prefactor of the thresholds. The prefactor is computed from the weakest feature.

    Notes
    -----
    The law holds for many samples; for a moderate number of samples use
    :func:`~solvable.theory.predict_spectral`. The exponent is the link's noise sensitivity exponent.
    Equations 22 and 23 of ``docs/derivations/multi-index.md``; backed by
    ``tests/models/multi_index/test_hierarchy.py``.

    Examples
    --------
    >>> law = hierarchical_law("he2", features=16, decay=1.0, noise=0.5)
    >>> law.exponent, round(law.prefactor, 2), law.error_exponent
    (1, 0.9, -0.5)
    """
    check_positive(decay=decay)
    if decay <= 0.5:
        raise InvalidParameter(
            f"decay is {decay:g}; allowed: above 0.5. At slower decays there is no power law between "
            "the plateau and the parametric regime."
        )
    chosen = make_link(link)
    beta = _degree_two_power(chosen)
    amplitudes = np.arange(1, features + 1) ** -float(decay)
    channel = AdditiveChannel((chosen,) * features, tuple(map(float, amplitudes)), noise)
    moments = channel.moments
    T = mapped_labels(moments, label_map)
    strengths = (moments.probabilities * T) @ moments.second
    variance = float(moments.probabilities @ T**2 - (moments.probabilities @ T) ** 2)
    last = float(strengths[-1])
    if not abs(last) > 1e-12 * np.sqrt(variance) * amplitudes[-1] ** beta:
        raise InvalidParameter(
            f"the label map {label_map!r} finds no feature of the link {link!r}; allowed: 'square' for a "
            "noise sensitivity exponent of 2."
        )
    prefactor = variance / last**2 * float(features) ** (-2 * decay * beta)
    return ScalingLaw(float(decay), beta, float(prefactor))


def _degree_two_power(link: Link) -> int:
    """Return the noise sensitivity exponent of a link; raise InvalidParameter if none is finite."""
    power = exponents_of(link).noise_sensitivity
    if power is None or not np.isfinite(power):
        raise InvalidParameter(
            f"the link {link.name!r} has no finite noise sensitivity exponent, so second moments find "
            "none of its features; allowed: links with E[sigma^k (z² - 1)] not 0 for some k."
        )
    return int(power)
