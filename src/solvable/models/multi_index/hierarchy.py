r"""Thresholds and error curves of hierarchical models: regimes, exponents and prefactors."""

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
    r"""Sample ratios from which each feature of an additive model is found by second moments.

    .. math:: \alpha_k^{\rm opt}=\frac1{E[G_{kk}(y)^2]},\qquad
        \alpha_k=\frac1{E[T^2/(\bar\lambda-T)^2]}\ \text{where}\
        \alpha_kE\Big[\frac{T\,G_{kk}}{\bar\lambda-T}\Big]=1 .

    Parameters
    ----------
    channel : AdditiveChannel
        Links, amplitudes and noise.
    label_map : str or callable, optional
        Map of the label that weights samples; default the best one for each feature.

    Returns
    -------
    ndarray of shape (p,)
        :math:`n/d`; infinite for a feature that second moments of this map never show.

    Raises
    ------
    InvalidParameter
        If weights are not bounded, as with "identity": their threshold depends on the dimension.

    Notes
    -----
    A quarter of a second for 128 features. Note 3.1 and 3.2 (eq. 3.2), no Monte Carlo; features that
    links which are not even mix are taken alone. Backed by
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
        return moments.weak_recovery_ratio
    return emergence_ratio(moments.law(mapped_labels(moments, label_map)))


@dataclass(frozen=True)
class ScalingLaw:
    """Large-sample law of a power-law hierarchy: alpha_k = C k^(2 gamma beta)."""

    decay: float  # gamma
    exponent: int  # beta, the noise sensitivity exponent: 1 or 2
    prefactor: float  # C

    def thresholds(self, features: int) -> np.ndarray:
        """Threshold of each feature, shape (p,)."""
        k = np.arange(1, features + 1, dtype=np.float64)
        return np.asarray(self.prefactor * k ** (2 * self.decay * self.exponent))

    def overlaps(self, features: int, sample_ratio: float) -> np.ndarray:
        """Squared overlap of each feature, shape (p,)."""
        # rho_k² = (1 - alpha_k / alpha)_+ (3.9)
        return np.asarray(np.maximum(1 - self.thresholds(features) / sample_ratio, 0.0))

    def subspace_error(self, features: int, sample_ratio: float) -> float:
        """Weighted error of the subspace, at a finite number of features."""
        amplitudes = np.arange(1, features + 1, dtype=np.float64) ** -self.decay
        return float(amplitudes**2 @ (1 - self.overlaps(features, sample_ratio)))

    def regime(self, features: int, sample_ratio: float) -> str:
        """Name of the regime: plateau, power law, or parametric."""
        first, last = self.thresholds(features)[[0, -1]]
        if sample_ratio <= first:
            return "plateau"
        return "power law" if sample_ratio < last else "parametric"

    @property
    def error_exponent(self) -> float:
        """Exponent of the error between the first and the last threshold, for decay > 1/2."""
        # MSE ~ alpha^(-(1 - 1/(2 gamma)) / beta)
        return -(1 - 1 / (2 * self.decay)) / self.exponent

    def asymptote(self, features: int, sample_ratio: float) -> float:
        """Error by the regime's leading term, the tail beyond the last feature taken off."""
        gamma, beta, ratio = self.decay, self.exponent, sample_ratio / self.prefactor
        k = np.arange(1, features + 1, dtype=np.float64)
        name = self.regime(features, sample_ratio)
        if name == "plateau":
            return float(np.sum(k ** (-2 * gamma)))
        if name == "parametric":
            # sum_k a_k² alpha_k / alpha; C p / alpha for beta = 1
            return float(np.sum(k ** (2 * gamma * (beta - 1)))) / ratio
        # int_0^m k^(-2 gamma) alpha_k / alpha dk + int_m^p k^(-2 gamma) dk at alpha_m = alpha
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
    r"""Exponent and prefactor of the thresholds of a power-law hierarchy, from one label map.

    .. math:: \alpha_k=\frac{\mathrm{Var}\,T}{s_k^2}\simeq
        \frac{(\beta!)^2\,\mathrm{Var}\,T}{c_\beta^2E[T^{(\beta)}]^2}k^{2\gamma\beta},\qquad
        s_k=E[T(y)(z_k²-1)].

    Parameters
    ----------
    link : str
        Name or formula of an even link.
    features : int
        :math:`p`, at least 1.
    decay : float
        :math:`\gamma>1/2`.
    noise : float
        :math:`\Delta`.
    label_map : str or callable
        Map of the label.

    Returns
    -------
    ScalingLaw
        The law, its prefactor read off the weakest feature.

    Raises
    ------
    InvalidParameter
        If the decay is 1/2 or less, or the label map tells nothing of the features.

    Notes
    -----
    A formula for many samples: at moderate ones use
    :func:`~solvable.theory.predict_spectral`. Note 3.6 (eq. 3.9) and 3.7; the exponent is that of
    the power of the link with a part of degree two. Backed by
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
            f"decay is {decay:g}; allowed: above 1/2. At slower decays no power law stands between "
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
            f"the label map {label_map!r} tells nothing of the features of the link {link!r}; "
            "allowed: 'square' for a noise sensitivity exponent of 2."
        )
    prefactor = variance / last**2 * float(features) ** (-2 * decay * beta)
    return ScalingLaw(float(decay), beta, float(prefactor))


def _degree_two_power(link: Link) -> int:
    """Noise sensitivity exponent of a link, where it has one."""
    power = exponents_of(link).noise_sensitivity
    if power is None or not np.isfinite(power):
        raise InvalidParameter(
            f"no power of the link {link.name!r} has a part of degree two, so that second moments tell "
            "nothing of its features; allowed: links with a noise sensitivity exponent."
        )
    return int(power)
