"""Laws of signal matrices as state evolution and the loop see them."""

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
    """A law of matrices whose singular vectors are uniform."""

    @property
    def multiplicity(self) -> int:
        """How often an entry occurs: 2 for symmetric matrices, 1 for rectangular ones."""

    @property
    def variance(self) -> float:
        """Error per dimension of the prior mean."""

    @property
    def second_moment(self) -> float:
        """Squared norm per dimension."""

    def mmse(self, noise: np.ndarray) -> np.ndarray:
        """Least error per dimension from S + sqrt(t) G, at these variances t."""

    def denoise(self, observed: np.ndarray, noise: float) -> np.ndarray:
        """Posterior mean of S from S + sqrt(t) G."""


@dataclass(frozen=True)
class SymmetricSignal:
    """Symmetric matrices of a given spectrum with uniform eigenvectors (2408.03733, 2503.14121)."""

    spectrum: Measure

    multiplicity = 2

    @cached_property
    def mean(self) -> float:
        """Mean eigenvalue, which a Bayesian knows."""
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
        """E(t) = t - (4 pi² / 3) t² int mu_t³, of every entry."""
        t = np.asarray(noise, dtype=np.float64)
        # In more noise the linear estimate is as good to 1e-7, and the integral all cancels.
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
        """What is known without samples: a multiple of the identity."""
        return self.mean * np.eye(size)

    def denoise(self, observed: np.ndarray, noise: float) -> np.ndarray:
        """Eigenvectors kept, each eigenvalue moved to lambda - 2 t h(lambda)."""
        values, vectors = np.linalg.eigh(observed)
        return rebuilt(vectors, self.denoised(values, noise))

    def denoised(self, values: np.ndarray, noise: float) -> np.ndarray:
        """Best eigenvalues for the eigenvectors at these, all d of them."""
        spectrum = self.spectrum
        if not isinstance(spectrum, MarchenkoPasturMeasure):
            law = SpectralLaw(spectrum, noise=float(np.sqrt(noise)))
            # Eigenvalues beyond the edges are noise that message passing must not follow.
            return denoised(law, np.clip(values, law.edges[0, 0], law.edges[-1, 1]))
        scale, ratio = spectrum.scale, spectrum.width_ratio
        found = wishart_denoised(ratio, noise / scale**2, values / scale, values.size)
        if found is not None:
            return scale * found
        law = SpectralLaw(spectrum, noise=float(np.sqrt(noise)))
        # A law with a gap: the same room for a signal that is larger by chance.
        room = 1 + largest_by_chance(ratio, values.size)
        larger = SpectralLaw(spectrum, noise=float(np.sqrt(noise)) / room)
        return denoised(law, np.clip(values, law.edges[0, 0], room * larger.edges[-1, 1]))


def rebuilt(vectors: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Symmetric matrix of these eigenvectors and eigenvalues."""
    # A product with its own transpose is done in half the arithmetic.
    total = np.zeros((len(vectors), len(vectors)))
    for sign in (1.0, -1.0):
        some = sign * values > 0
        if some.any():
            root = vectors[:, some] * np.sqrt(np.abs(values[some]))
            total += sign * (root @ root.T)
    return total


def signal_denoiser(signal: Signal, least_noise: float = 1e-9) -> Denoiser:
    """The signal's posterior mean and error from b and the precision of the loop."""

    def denoiser(b: np.ndarray, A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        precision = min(max(float(A[0, 0]), 1e-300), 1 / least_noise)
        # R = b / A = S + sqrt(1/A) G
        noise = 1 / precision
        error = float(signal.mmse(np.array([noise]))[0])
        return signal.denoise(b / precision, noise), np.array([[error]])

    return denoiser
