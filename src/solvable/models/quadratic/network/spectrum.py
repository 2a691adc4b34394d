"""Test error, noise and spectrum of a fit, estimated from its training data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.arrays import Array, namespace
from solvable.models.quadratic.network.amp import degrees_of_freedom
from solvable.models.quadratic.network.solvers import QuadraticSolution
from solvable.spectra.denoiser import denoised, empirical_denoised
from solvable.spectra.free_convolution import SpectralLaw


@dataclass(frozen=True)
class SpectralEstimate:
    """Test error and noisy spectrum of a fit, estimated from training data."""

    gcv_score: float
    """Estimated mean squared error on fresh noisy labels, 4 alpha delta²."""
    degrees_of_freedom: float
    noise: float
    """delta, the scale of the semicircle that is added to the target's spectrum."""
    shrinkage: float
    """b, the shift of the learned eigenvalues."""
    eigenvalues: Array
    """Eigenvalues of M, descending, shape (d,); those above b are learned."""
    vectors: Array
    """Eigenvectors of M as columns, shape (d, d)."""

    def pruned(self) -> np.ndarray:
        """Return the fit with its cut moved to the edge of the noise."""
        # (M - max(2 delta, b))_+  (quadratic 15; arXiv:2509.24882, Corollary 2)
        cut = max(2 * self.noise, self.shrinkage)
        return self._rebuilt(np.maximum(self.eigenvalues - cut, 0))

    def denoised(self, target: np.ndarray | None = None) -> np.ndarray:
        """Return the rotationally invariant denoiser of M, with the target's eigenvalues if given."""
        # nu - 2 delta² h(nu), clipped at 0, with h the Hilbert transform of the law of M (2408.03733).
        # The law is that of target plus noise, or the eigenvalues of M smoothed over delta / sqrt(d). At
        # d = 60 and 100 the error exceeds that of the best eigenvalues for the eigenvectors of M by 2 to
        # 8 % with the target's eigenvalues, and by 4 to 18 % without.
        if target is not None:
            law = SpectralLaw(np.asarray(target, dtype=np.float64), noise=self.noise)
            return self._rebuilt(np.maximum(denoised(law, self.eigenvalues), 0))
        kept = empirical_denoised(
            np.asarray(self.eigenvalues), max(self.noise, np.finfo(float).tiny)
        )
        return self._rebuilt(np.maximum(kept, 0))

    def features(self) -> tuple[np.ndarray, np.ndarray]:
        """Strengths and squared overlaps of the features above the noise, strongest first."""
        # 2.02 is the 99 % quantile of the Tracy-Widom law.
        edge = self.noise * (2 + 2.02 * len(self.eigenvalues) ** (-2 / 3))
        seen = self.eigenvalues[self.eigenvalues > edge]
        # nu = s + delta² / s, squared overlap 1 - delta² / s² for isolated features
        strengths = (seen + np.sqrt(np.maximum(seen**2 - 4 * self.noise**2, 0))) / 2
        return strengths, 1 - (self.noise / strengths) ** 2

    def _rebuilt(self, eigenvalues: np.ndarray) -> np.ndarray:
        return np.asarray((self.vectors * eigenvalues) @ self.vectors.T)


def spectral_estimate(solution: QuadraticSolution, regularisation: float) -> SpectralEstimate:
    """Estimate test error, noise and spectrum of a minimiser by generalised cross-validation."""
    from scipy.optimize import brentq

    # E_test = E_train / (1 - df/n)²,  1/epsilon = 4 (n - df) / d²,  M = S + lambda epsilon H
    # (quadratic 7), exact for isotropic samples of large d. At the minimiser S and H commute and
    # H = 1 on the range of S, so that df falls with the threshold and the root is unique. If the fit
    # interpolates the labels, df = n and the score is infinite.
    d, n = solution.dual.shape[0], solution.residual.shape[0]
    xp = namespace(solution.factor)
    strengths = xp.sum(solution.factor**2, axis=0)
    kept = strengths.shape[0]
    basis = xp.linalg.qr(solution.factor, mode="complete")[0]
    outside = basis[:, kept:]
    hidden, rotation = xp.linalg.eigh(outside.T @ solution.dual @ outside)
    hidden, outside = xp.clip(xp.flip(hidden), max=1.0), outside @ xp.flip(rotation, axis=1)

    def freedom(threshold: float) -> float:
        values = xp.concat([strengths + threshold, threshold * hidden])
        return degrees_of_freedom(values, strengths)

    def excess(epsilon: float) -> float:
        return 4 * epsilon * (n - freedom(regularisation * epsilon)) / d**2 - 1

    # If nothing is learned the root is d²/4n, which rounding may move out of the bracket.
    low = (1 - 1e-12) * d**2 / (4 * n)
    high = 1e12 * low
    inside = solution.factor / xp.sqrt(strengths)
    if excess(high) < 0:
        blank = xp.concat([strengths, 0 * hidden])
        vectors = xp.concat([inside, outside], axis=1)
        return SpectralEstimate(np.inf, float(n), np.inf, 0.0, blank, vectors)
    logarithm = brentq(
        lambda place: excess(float(np.exp(place))), np.log(low), np.log(high), xtol=1e-13
    )
    epsilon = float(np.exp(logarithm))
    threshold = regularisation * epsilon
    # delta = 2 epsilon |r| / d
    noise = 2 * epsilon * float(xp.linalg.vector_norm(solution.residual)) / d
    return SpectralEstimate(
        gcv_score=4 * n / d**2 * noise**2,
        degrees_of_freedom=freedom(threshold),
        noise=noise,
        shrinkage=threshold,
        eigenvalues=xp.concat([strengths + threshold, threshold * hidden]),
        vectors=xp.concat([inside, outside], axis=1),
    )
