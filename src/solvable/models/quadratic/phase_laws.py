r"""Scaling laws of quadratic networks that learn a power law, with their constants."""

from __future__ import annotations

from enum import StrEnum

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidParameter
from solvable.models.quadratic.bulk import check_not_negative
from solvable.spectra.roots import bracketed_root


class QuadraticPhase(StrEnum):
    """Name of a phase in arXiv:2509.24882, and of the interpolation peak between V and VIa."""

    PLATEAU = "Ia"
    COLLAPSE = "Ib"
    THRESHOLDED = "II"
    SHIFTED = "III"
    BENIGN = "IV"
    OVERFITTING = "V"
    PEAK = "peak"
    NOISY_BULK = "VIa"
    FULL_RANK = "VIb"


DESCRIPTIONS = {
    QuadraticPhase.PLATEAU: "too few samples: the strongest feature is below the noise",
    QuadraticPhase.COLLAPSE: "too strong a regularisation: nothing is learned",
    QuadraticPhase.THRESHOLDED: "strong features kept and shrunk, no bulk: outliers to heavy tail",
    QuadraticPhase.SHIFTED: "every feature kept and shrunk: shifted heavy tail",
    QuadraticPhase.BENIGN: "features above the noise learned, little of the bulk kept: best rate",
    QuadraticPhase.OVERFITTING: "noise in the bulk dominates the error: harmful overfitting",
    QuadraticPhase.PEAK: "labels just interpolated: wide bulk",
    QuadraticPhase.NOISY_BULK: "half of the bulk kept beside spikes: parametric rate",
    QuadraticPhase.FULL_RANK: "every feature learned with its noise: parametric rate, twice VIa",
}
"""What happens in each phase."""


def full_rank_risk(
    *, sample_ratio: float, label_noise: float, regularisation: float = 0.0
) -> float:
    r"""Phases III and VIb: every eigenvalue of the noisy target is above the threshold.

    .. math:: \tfrac1\epsilon=4\alpha-2,\quad b=\tilde\lambda\epsilon,\quad
        \delta^2=\frac{\Delta+2b^2}{4\alpha-2},\quad R=b^2+\delta^2,

    exact as long as b is below the spectrum of :math:`S^\star+\delta Z`: the positive cone does
    nothing. For many samples :math:`R\simeq b^2+\frac{\Delta}{4\alpha}`, twice the noise of
    VIa.

    Parameters
    ----------
    sample_ratio : float
        :math:`\alpha`, above 1/2.
    label_noise : float
        :math:`\Delta`.
    regularisation : float
        :math:`\tilde\lambda`.

    Returns
    -------
    float
        R.

    Notes
    -----
    Derived; backed by ``tests/models/quadratic/test_phases.py``.

    Examples
    --------
    >>> full_rank_risk(sample_ratio=1.0, label_noise=0.5)
    0.25
    """
    if not 0.5 < sample_ratio < np.inf:
        raise InvalidParameter(
            f"sample_ratio is {sample_ratio}; allowed: above 1/2, as fewer samples leave a part of "
            "the target undetermined."
        )
    check_not_negative(label_noise=label_noise, regularisation=regularisation)
    shift = regularisation / (4 * sample_ratio - 2)
    return float(shift**2 + (label_noise + 2 * shift**2) / (4 * sample_ratio - 2))


def truncated_constant(exponent: float, shrinkage: float = 2.0) -> float:
    r"""Constant of phase IV: :math:`R=C_\gamma\,\delta^2K/d` with K features above the noise.

    .. math:: C_\gamma(\beta)=\frac1{2\gamma-1}+\beta^2+2-\frac{4\beta}{1+\gamma}
        +\frac3{1+2\gamma},\qquad \beta=b/\delta\le2 :

    the tail below the noise, and equation (6) with its factor 2 summed over
    :math:`s_i=\delta(K/i)^\gamma`. Without regularisation and with few samples
    :math:`\beta\to2`.

    Parameters
    ----------
    exponent : float
        :math:`\gamma`, above 1/2.
    shrinkage : float
        :math:`\beta` in [0, 2].

    Returns
    -------
    float
        :math:`C_\gamma`.

    Notes
    -----
    Derived; backed by ``tests/models/quadratic/test_phases.py`` (the exact solution at large d).

    Examples
    --------
    >>> truncated_constant(1.0)
    4.0
    """
    check_decay(exponent)
    if not 0 <= shrinkage <= 2:
        raise InvalidParameter(f"shrinkage is {shrinkage}; allowed: from 0 to 2.")
    head = shrinkage**2 + 2 - 4 * shrinkage / (1 + exponent) + 3 / (1 + 2 * exponent)
    return float(1 / (2 * exponent - 1) + head)


def truncated_risk(
    *, exponent: float, normalisation: float, effective_samples: float, label_noise: float
) -> float:
    r"""Phase IV: features above the noise are learned, and little of the bulk is kept.

    .. math:: R=c_\gamma^2C_\gamma K^{1-2\gamma},\qquad
        c_\gamma^2K^{-2\gamma}\,(2n_\mathrm{eff}-C_\gamma K)=\tfrac\Delta2,

    the second being :math:`s_K=\delta` with :math:`2\alpha\delta^2=R+\frac\Delta2`. For
    :math:`R\ll\Delta` it is :math:`C_\gamma\frac{\Delta}{4n_\mathrm{eff}}
    \big(\frac{4c_\gamma^2n_\mathrm{eff}}\Delta\big)^{1/2\gamma}`, and without noise, where the target
    below the cut is the noise, :math:`K=2n_\mathrm{eff}/C_\gamma`.

    Parameters
    ----------
    exponent : float
        :math:`\gamma`.
    normalisation : float
        :math:`c_\gamma^2=1/\sum_jj^{-2\gamma}`.
    effective_samples : float
        :math:`n_\mathrm{eff}=n/d`.
    label_noise : float
        :math:`\Delta\ge0`.

    Returns
    -------
    float
        The law :math:`n_\mathrm{eff}^{-1+1/2\gamma}`, or :math:`n_\mathrm{eff}^{1-2\gamma}`
        without noise.

    Notes
    -----
    Exponents of arXiv:2509.24882, constants derived; backed by
    ``tests/models/quadratic/test_phases.py``.

    Examples
    --------
    >>> round(truncated_risk(
    ...     exponent=1.0, normalisation=0.61, effective_samples=100.0, label_noise=0.5
    ... ), 4)
    0.1375
    """
    check_positive(normalisation=normalisation, effective_samples=effective_samples)
    check_not_negative(label_noise=label_noise)
    constant = truncated_constant(exponent)
    most = 2 * effective_samples / constant
    learned = most
    if label_noise > 0:
        scale = label_noise / (2 * normalisation)

        def excess(rank: float) -> float:
            return scale * rank ** (2 * exponent) + constant * rank - 2 * effective_samples

        learned = bracketed_root(excess, 0.0, most, absolute=1e-14 * most)
    return float(normalisation * constant * learned ** (1 - 2 * exponent))


def thresholded_risk(
    *, dimension: int, exponent: float, normalisation: float, threshold: float
) -> float:
    r"""Phase II: features above the threshold are shrunk by it, the others are lost.

    .. math:: R=\frac1d\Big[K_bb^2+\sum_{i>K_b}s_i^2\Big]
        =\frac{2\gamma}{2\gamma-1}\,\frac{K_bb^2}d,\qquad
        K_b=(c_\gamma\sqrt d/b)^{1/\gamma},\ b=\frac{\tilde\lambda d}{4n_\mathrm{eff}} .

    Parameters
    ----------
    dimension : int
        :math:`d`.
    exponent : float
        :math:`\gamma`.
    normalisation : float
        :math:`c_\gamma^2`.
    threshold : float
        :math:`b`.

    Returns
    -------
    float
        The law :math:`(\tilde\lambda\sqrt d/n_\mathrm{eff})^{2-1/\gamma}`.

    Notes
    -----
    Exponent of arXiv:2509.24882, constant derived; backed by
    ``tests/models/quadratic/test_phases.py``.

    Examples
    --------
    >>> round(thresholded_risk(
    ...     dimension=10_000, exponent=1.0, normalisation=0.61, threshold=2.0
    ... ), 4)
    0.0312
    """
    check_positive(dimension=dimension, normalisation=normalisation, threshold=threshold)
    check_decay(exponent)
    kept = (np.sqrt(normalisation * dimension) / threshold) ** (1 / exponent)
    return float(2 * exponent / (2 * exponent - 1) * kept * threshold**2 / dimension)


def check_decay(exponent: float) -> None:
    r"""Refuse an exponent at which the target's energy lies in its tail.

    Parameters
    ----------
    exponent : float
        :math:`\gamma`.

    Raises
    ------
    InvalidParameter
        Unless it is finite and above 1/2.
    """
    if not 0.5 < exponent < np.inf:
        raise InvalidParameter(
            f"exponent is {exponent}; allowed: above 1/2, else the energy of the target is not in "
            "finitely many features and none of the laws holds."
        )


def phase_exponents(
    phase: QuadraticPhase, *, exponent: float, noiseless: bool = False
) -> tuple[float, float, float]:
    r"""Powers of :math:`n_\mathrm{eff}`, :math:`\tilde\lambda` and d in the error of a phase.

    Parameters
    ----------
    phase : QuadraticPhase
        The phase.
    exponent : float
        :math:`\gamma`.
    noiseless : bool
        Whether :math:`\Delta=0`, where IV is :math:`n_\mathrm{eff}^{1-2\gamma}`.

    Returns
    -------
    tuple of float
        Three powers.

    Notes
    -----
    Source: arXiv:2509.24882, Result 1. Backed by ``tests/models/quadratic/test_phases.py``.

    Examples
    --------
    >>> phase_exponents(QuadraticPhase.BENIGN, exponent=1.0)
    (-0.5, 0.0, 0.0)
    """
    check_decay(exponent)
    tail = 2 - 1 / exponent
    return {
        QuadraticPhase.PLATEAU: (0.0, 0.0, 0.0),
        QuadraticPhase.COLLAPSE: (0.0, 0.0, 0.0),
        QuadraticPhase.THRESHOLDED: (-tail, tail, tail / 2),
        QuadraticPhase.SHIFTED: (-2.0, 2.0, 2.0),
        QuadraticPhase.BENIGN: (1 - 2 * exponent if noiseless else -tail / 2, 0.0, 0.0),
        QuadraticPhase.OVERFITTING: (0.4, 0.0, -0.4),
        QuadraticPhase.PEAK: (0.0, -2 / 3, 0.0),
        QuadraticPhase.NOISY_BULK: (-1.0, 0.0, 1.0),
        QuadraticPhase.FULL_RANK: (-1.0, 0.0, 1.0),
    }[phase]
