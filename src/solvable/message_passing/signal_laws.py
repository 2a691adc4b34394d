"""Symmetric signal matrices: Bayes error and denoiser at a given noise variance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np

from solvable.message_passing.loop import Denoiser
from solvable.spectra.denoiser import denoised, denoising_error
from solvable.spectra.free_convolution import SpectralLaw
from solvable.spectra.measures import Measure
from solvable.spectra.product_measure import MarchenkoPasturMeasure
from solvable.spectra.wishart_errors import (
    largest_by_chance,
    wishart_denoised,
    wishart_denoising_errors,
)


class Signal(Protocol):
    """Interface of a distribution of matrices with uniform singular vectors."""

    @property
    def multiplicity(self) -> int:
        """Multiplicity of an entry: 2 for symmetric matrices, 1 for rectangular matrices."""

    @property
    def variance(self) -> float:
        """Error per dimension of the prior mean."""

    @property
    def second_moment(self) -> float:
        """Mean squared norm of the signal per dimension."""

    def mmse(self, noise: np.ndarray) -> np.ndarray:
        """Bayes error per dimension of S observed as S + sqrt(t) G, at variances t."""

    def denoise(self, observed: np.ndarray, noise: float) -> np.ndarray:
        """Posterior mean of S observed as S + sqrt(t) G."""


@dataclass(frozen=True)
class SymmetricSignal:
    r"""Symmetric matrices with a given spectrum and uniform eigenvectors.

    The error of an estimate is :math:`|\hat S-S|^2/d`.

    Parameters
    ----------
    spectrum : Measure
        Law of the eigenvalues, such as :func:`solvable.spectra.marchenko_pastur`.

    Notes
    -----
    Bayes denoiser of Bun et al. (2016), here (sensing 1). Backed by ``tests/inference/test_matrices.py``.

    Examples
    --------
    >>> from solvable.inference import Output, state_evolution
    >>> from solvable.spectra import marchenko_pastur
    >>> signal = SymmetricSignal(marchenko_pastur(0.5))
    >>> law = state_evolution(signal, Output("z", noise=0.25), sample_ratio=0.441063)
    >>> round(float(law.error), 4)
    0.1968
    """

    spectrum: Measure

    multiplicity = 2

    @cached_property
    def mean(self) -> float:
        """Mean eigenvalue."""
        if isinstance(self.spectrum, MarchenkoPasturMeasure):
            return float(self.spectrum.scale * np.sqrt(self.spectrum.width_ratio))
        return float(self.spectrum.node_weights @ self.spectrum.nodes)

    @cached_property
    def variance(self) -> float:
        """Variance of the spectrum."""
        if isinstance(self.spectrum, MarchenkoPasturMeasure):
            return float(self.spectrum.scale**2)
        return float(self.spectrum.node_weights @ (self.spectrum.nodes - self.mean) ** 2)

    @property
    def second_moment(self) -> float:
        """Second moment of the spectrum."""
        return self.variance + self.mean**2

    def mmse(self, noise: np.ndarray) -> np.ndarray:
        """E(t) = t - (4 pi² / 3) t² int mu_t³ for each t (sensing 2)."""
        t = np.asarray(noise, dtype=np.float64)
        # at large t the linear estimate is exact to 1e-7, and the integral form suffers from cancellation
        loud = t > 2e4 * self.variance
        if loud.any():
            linear = np.divide(self.variance * t, self.variance + t)
            return np.where(loud, linear, self.mmse(np.where(loud, self.variance, t)))
        if isinstance(self.spectrum, MarchenkoPasturMeasure):
            scale = self.spectrum.scale**2
            return scale * wishart_denoising_errors(self.spectrum.width_ratio, t / scale)
        laws = [SpectralLaw(self.spectrum, noise=float(np.sqrt(value))) for value in t.ravel()]
        return np.array([max(denoising_error(law), 0.0) for law in laws]).reshape(t.shape)

    def prior_mean(self, size: int) -> np.ndarray:
        """Prior mean, the mean eigenvalue times the identity."""
        return self.mean * np.eye(size)

    def denoise(self, observed: np.ndarray, noise: float) -> np.ndarray:
        """Keep eigenvectors and map each eigenvalue to lambda - 2 t h(lambda) (sensing 1)."""
        values, vectors = np.linalg.eigh(observed)
        return rebuilt(vectors, self.denoised(values, noise))

    def denoised(self, values: np.ndarray, noise: float) -> np.ndarray:
        """Denoised values of all d eigenvalues (sensing 1)."""
        spectrum = self.spectrum
        if not isinstance(spectrum, MarchenkoPasturMeasure):
            law = SpectralLaw(spectrum, noise=float(np.sqrt(noise)))
            # eigenvalues beyond the edges are noise, and message passing must not follow them
            return denoised(law, np.clip(values, law.edges[0, 0], law.edges[-1, 1]))
        scale, ratio = spectrum.scale, spectrum.width_ratio
        mapped = wishart_denoised(ratio, noise / scale**2, values / scale, values.size)
        if mapped is not None:
            return scale * mapped
        law = SpectralLaw(spectrum, noise=float(np.sqrt(noise)))
        # with a gap in the spectrum, a sample's largest eigenvalue exceeds the limit: raise the edge
        room = 1 + largest_by_chance(ratio, values.size)
        larger = SpectralLaw(spectrum, noise=float(np.sqrt(noise)) / room)
        return denoised(law, np.clip(values, law.edges[0, 0], room * larger.edges[-1, 1]))


def rebuilt(vectors: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Symmetric matrix with given eigenvectors and eigenvalues."""
    # a product with its own transpose takes half the arithmetic
    total = np.zeros((len(vectors), len(vectors)))
    for sign in (1.0, -1.0):
        some = sign * values > 0
        if some.any():
            root = vectors[:, some] * np.sqrt(np.abs(values[some]))
            total += sign * (root @ root.T)
    return total


def signal_denoiser(signal: Signal, least_noise: float = 1e-9) -> Denoiser:
    """Denoiser of message passing: posterior mean and error from b and the precision A."""

    def denoiser(b: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        precision = min(max(float(A[0, 0]), 1e-300), 1 / least_noise)
        # R = b / A = S + sqrt(1/A) G   (sensing 6)
        noise = 1 / precision
        error = float(signal.mmse(np.array([noise]))[0])
        return signal.denoise(b / precision, noise), np.array([[error]])

    return denoiser
