"""What a fitted quadratic network says of its own error: spectral GCV, noise, pruning, denoising."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.models.quadratic.amp import degrees_of_freedom
from solvable.models.quadratic.solvers import QuadraticSolution
from solvable.spectra.denoiser import denoised
from solvable.spectra.free_convolution import SpectralLaw

TRACY_WIDOM_99 = 2.02
"""Value that the scaled largest eigenvalue of a symmetric Gaussian matrix passes with 1 %."""


@dataclass(frozen=True)
class SpectralEstimate:
    r"""Test error and noisy spectrum of a fit, from training data alone.

    Parameters
    ----------
    gcv_score : float
        Mean squared error on fresh noisy labels, :math:`4\alpha\hat\delta^2`.
    degrees_of_freedom : float
        df at the fixed point.
    noise : float
        :math:`\hat\delta`, of the semicircle that the target's spectrum is convolved with.
    shrinkage : float
        :math:`\hat b`, by which its eigenvalues are shrunk.
    eigenvalues : ndarray of shape (d,)
        Of M, descending: those above b are learned, the others hidden by the threshold.
    vectors : ndarray of shape (d, d)
        Eigenvectors of M as columns.

    Examples
    --------
    >>> SpectralEstimate(1.0, 2.0, 0.5, 0.1, np.ones(1), np.eye(1)).noise
    0.5
    """

    gcv_score: float
    degrees_of_freedom: float
    noise: float
    shrinkage: float
    eigenvalues: np.ndarray
    vectors: np.ndarray

    @property
    def shrunk(self) -> np.ndarray:
        """Eigenvalues of the fit itself, descending, of shape (d,)."""
        return np.maximum(self.eigenvalues - self.shrinkage, 0)

    def pruned(self) -> np.ndarray:
        r"""Fit with its cut moved to the edge of the noise, :math:`(M - \max(2\delta, b)I)_+`.

        Returns
        -------
        ndarray of shape (d, d)
            Positive semi-definite.

        Notes
        -----
        arXiv:2509.24882, Corollary 2; ``tests/models/quadratic/test_spectrum.py``.
        """
        cut = max(2 * self.noise, self.shrinkage)
        return self._rebuilt(np.maximum(self.eigenvalues - cut, 0))

    def denoised(self, target: np.ndarray | None = None) -> np.ndarray:
        r"""Rotationally invariant denoiser of M, :math:`\nu - 2\delta^2 h(\nu)`, clipped at 0.

        Parameters
        ----------
        target : ndarray of shape (k,), optional
            Eigenvalues of the target where they are known; h is then the Hilbert transform of the
            law that they and the noise make, otherwise that of the eigenvalues of M, smoothed over
            :math:`\delta/\sqrt d`.

        Returns
        -------
        ndarray of shape (d, d)
            Positive semi-definite.

        Notes
        -----
        Measured on power laws and Marchenko-Pastur targets, d = 60 and 100: the error is 2 to 8 %
        above that of the best eigenvalues for M's eigenvectors with the target, 4 to 18 % without
        (a law of eigenvalues guessed from M does better on the one and worse on the other).
        arXiv:2408.03733; the smoothing is derived. ``tests/models/quadratic/test_spectrum.py``.
        """
        if target is not None:
            law = SpectralLaw(np.asarray(target, dtype=np.float64), noise=self.noise)
            return self._rebuilt(np.maximum(denoised(law, self.eigenvalues), 0))
        width = max(self.noise / np.sqrt(len(self.eigenvalues)), np.finfo(float).tiny)
        gaps = self.eigenvalues[:, None] - self.eigenvalues[None, :]
        hilbert = np.mean(gaps / (gaps**2 + width**2), axis=1)
        return self._rebuilt(np.maximum(self.eigenvalues - 2 * self.noise**2 * hilbert, 0))

    def features(self) -> tuple[np.ndarray, np.ndarray]:
        r"""Strengths of the features that stand out of the noise, and how well they are found.

        .. math:: s = \tfrac12\big(\nu + \sqrt{\nu^2 - 4\delta^2}\big),\qquad 1 - \delta^2/s^2

        Returns
        -------
        strengths : ndarray of shape (k,)
            Eigenvalues of the target behind those of M beyond
            :math:`\delta(2 + 2.02\,d^{-2/3})`, which noise alone passes once in a hundred times;
            descending.
        overlaps : ndarray of shape (k,)
            Squared overlaps of the first k columns of ``vectors`` with the target's eigenvectors.

        Notes
        -----
        arXiv:2505.17958 (derived: isolated features); ``tests/models/quadratic/test_spectrum.py``.
        """
        edge = self.noise * (2 + TRACY_WIDOM_99 * len(self.eigenvalues) ** (-2 / 3))
        seen = self.eigenvalues[self.eigenvalues > edge]
        strengths = (seen + np.sqrt(np.maximum(seen**2 - 4 * self.noise**2, 0))) / 2
        return strengths, 1 - (self.noise / strengths) ** 2

    def _rebuilt(self, eigenvalues: np.ndarray) -> np.ndarray:
        return np.asarray((self.vectors * eigenvalues) @ self.vectors.T)


def spectral_estimate(solution: QuadraticSolution, regularisation: float) -> SpectralEstimate:
    r"""Generalised cross-validation of the convex problem's minimiser.

    .. math:: E_{test} = \frac{E_{train}}{(1-\mathrm{df}/n)^2}, \qquad
        \frac1\epsilon = \frac{4(n-\mathrm{df})}{d^2}, \qquad
        M = \hat S + \tilde\lambda\epsilon H

    Parameters
    ----------
    solution : QuadraticSolution
        Of any solver.
    regularisation : float
        :math:`\tilde\lambda` it was found with.

    Returns
    -------
    SpectralEstimate
        With :math:`\hat\delta = 2\epsilon\sqrt{\|r\|^2/d^2}`. The score is infinite where the fit
        interpolates, as it then has as many degrees of freedom as samples.

    Notes
    -----
    Derived from the saddle point of arXiv:2505.17958; exact for isotropic samples of large d. At
    the minimiser S and H commute and H = 1 on the range of S, so that df falls with the threshold
    and there is one crossing. ``tests/models/quadratic/test_spectrum.py``.
    """
    d, n = solution.dual.shape[0], len(solution.residual)
    strengths = np.sum(solution.factor**2, axis=0)
    kept = len(strengths)
    basis = np.linalg.qr(solution.factor, mode="complete")[0]
    outside = basis[:, kept:]
    hidden, rotation = np.linalg.eigh(outside.T @ solution.dual @ outside)
    hidden, outside = np.minimum(hidden[::-1], 1), outside @ rotation[:, ::-1]

    def freedom(threshold: float) -> float:
        values = np.concatenate([strengths + threshold, threshold * hidden])
        return degrees_of_freedom(values, strengths)

    def excess(epsilon: float) -> float:
        return 4 * epsilon * (n - freedom(regularisation * epsilon)) / d**2 - 1

    low = d**2 / (4 * n)
    high = 2 * low
    while excess(high) < 0:
        if high > 1e12 * low:
            high = np.inf
            break
        high *= 2
    epsilon = _crossing(excess, low, high) if np.isfinite(high) else np.inf
    inside = solution.factor / np.sqrt(strengths)
    if not np.isfinite(epsilon):
        blank = np.concatenate([strengths, np.zeros(d - kept)])
        vectors = np.hstack([inside, outside])
        return SpectralEstimate(np.inf, float(n), np.inf, 0.0, blank, vectors)
    threshold = regularisation * epsilon
    noise = 2 * epsilon * float(np.linalg.norm(solution.residual)) / d
    return SpectralEstimate(
        gcv_score=4 * n / d**2 * noise**2,
        degrees_of_freedom=freedom(threshold),
        noise=noise,
        shrinkage=threshold,
        eigenvalues=np.concatenate([strengths + threshold, threshold * hidden]),
        vectors=np.hstack([inside, outside]),
    )


def _crossing(function: object, low: float, high: float) -> float:
    from scipy.optimize import brentq

    return float(brentq(function, low, high, xtol=1e-14 * low, rtol=1e-13))
