"""Predict the learner's risk from Gaussian draws of the few coordinates that it learns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.fitting.ridge import Regularisation
from solvable.message_passing.channels import AdditiveChannel
from solvable.models.multi_index.overlaps import (
    SpectralPrediction,
    bulk_parameters,
    detected_components,
    span_overlaps,
)
from solvable.models.multi_index.readout import Readout, ReadoutName, count_features, fit_readout
from solvable.operators.labels import LabelMap, apply_label_map
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.label_weighted import label_weighted_spectrum
from solvable.spectra.orientation import oriented

TEST_ROWS = 20_000
"""Number of fresh draws for one risk; the risk then scatters by about 1 % of its value."""


@dataclass(frozen=True)
class Fit:
    """Settings of the readout, and the number of samples to which the readout is fitted."""

    kind: ReadoutName
    n_neurons: int
    regularisation: Regularisation
    samples: int

    def rows(self, directions: int) -> int:
        """Number of draws that represent the samples; the fit takes at most about 2e9 multiplications."""
        features = count_features(self.kind, directions, self.n_neurons)
        return min(self.samples, int(np.clip(2e9 / features**2, 4_000, 60_000)))

    def __call__(self, learned: np.ndarray, labels: np.ndarray) -> Readout:
        """Fit a readout to learned coordinates (m, k)."""
        rng = np.random.default_rng(0)
        return fit_readout(
            [(learned, labels)],
            learned.shape[1],
            self.kind,
            n_neurons=self.n_neurons,
            regularisation=self.regularisation,
            rng=rng,
        )


@dataclass(frozen=True)
class Pass:
    """Directions of one pass: their components, and their dependence on the training samples."""

    components: np.ndarray  # <true direction, eigenvector>, (p, k)
    parameters: np.ndarray  # lambda* of each eigenvector, (k,)

    def coordinates(self, latent: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Coordinates of fresh samples (m, k), from latent coordinates and normal noise."""
        # coordinates C^T z + (1 - C^T C)^(1/2) xi of orthonormal eigenvectors   (multi-index 26)
        C = self.components
        return np.asarray(latent @ C + noise @ _power(np.eye(C.shape[1]) - C.T @ C, 0.5))

    def leaning(self, weights: np.ndarray) -> np.ndarray:
        """Ratio of a training sample's coordinates to those of a fresh sample, (m, k)."""
        # <u, x_i> = lambda* / (lambda* - T_i) <u_-i, x_i>, where the eigenvector u_-i is computed without
        # sample i   (multi-index 25)
        return np.asarray(self.parameters / (self.parameters - weights[:, None]))


def _power(matrix: np.ndarray, exponent: float) -> np.ndarray:
    """Power of a symmetric matrix whose eigenvalues are at least 0 up to rounding."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.maximum(values, 1e-9) ** exponent @ vectors.T)


def one_shot_risk(
    channel: AdditiveChannel,
    found: SpectralPrediction,
    weights_of: tuple[np.ndarray, np.ndarray],
    fit: Fit,
    rng: np.random.Generator,
) -> float:
    """Excess risk of a readout that is fitted to the samples which determined the directions."""
    # excess risk R = E[(f(z) - readout(coordinates))²]   (multi-index 26)
    directions = Pass(found.rotation * np.sqrt(found.span_overlap), found.parameters)
    k = found.parameters.size
    rows = fit.rows(k)
    risks = []
    # Small training sets are drawn several times, and the risk is averaged.
    for own in rng.spawn(int(np.clip(8_000 // rows, 1, 20))):
        # Separate streams: of two sample sizes, the smaller set of rows is the beginning of the larger.
        rows_of, noise, fresh = own.spawn(3)
        z, y = _drawn(channel, rows, rows_of)
        learned = directions.coordinates(z, noise.standard_normal((rows, k)))
        readout = fit(learned * directions.leaning(np.interp(y, *weights_of)), y)
        z = fresh.standard_normal((TEST_ROWS, channel.n_directions))
        learned = directions.coordinates(z, fresh.standard_normal((TEST_ROWS, k)))
        risks.append(_excess(channel, z, learned, readout, fit, rows))
    return float(np.mean(risks))


def _drawn(
    channel: AdditiveChannel, rows: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    inputs, noise = rng.spawn(2)
    z = inputs.standard_normal((rows, channel.n_directions))
    return z, channel.sample(z, noise)


def _excess(
    channel: AdditiveChannel,
    latent: np.ndarray,
    learned: np.ndarray,
    readout: Readout,
    fit: Fit,
    rows: int,
) -> float:
    risk = float(np.mean((channel.clean(latent) - readout(learned)) ** 2))
    if fit.samples > rows:
        # Fewer draws than samples increase the variance of the fit by
        # (residual variance) (degrees of freedom) (1 / rows - 1 / samples), which is subtracted here.
        freedom = readout.degrees_of_freedom * (1 / rows - 1 / fit.samples)
        risk -= (risk + channel.noise) * freedom / (1 + freedom)
    return max(risk, 0.0)


@dataclass(frozen=True)
class Deflated:
    """Predicted overlaps, eigenvalues and risk after a second pass on the residuals."""

    squared_overlap: np.ndarray
    eigenvalues: np.ndarray
    risk: float


def deflated(
    channel: AdditiveChannel,
    found: SpectralPrediction,
    weights_of: tuple[np.ndarray, np.ndarray],
    label_map: LabelMap,
    dimension: int,
    fit: Fit,
    rng: np.random.Generator,
) -> Deflated:
    """Predict a second pass on the residuals of the first pass, for even links."""
    # Eigenvectors near the edge mix features, and the number that the first pass detects varies between
    # samples. Both are drawn, with other latent coordinates in each draw.
    # Errors of the strengths in few rows would raise the largest strengths.
    size = count_features(fit.kind, channel.n_directions, fit.n_neurons) ** 2
    rows = int(np.clip(2e10 / size, 8_000, 16_000))
    passes = detected_components(
        channel.moments, weights_of[1], sample_ratio=fit.samples / dimension, dimension=dimension,
        draws=int(np.clip(1e11 / (rows * size), 2, 16)),
    )  # fmt: skip
    outcomes = [
        _Draw(channel, found, weights_of, label_map, dimension, fit, rows, own).second_pass(
            components
        )
        for own, components in zip(rng.spawn(len(passes)), passes, strict=True)
    ]
    return Deflated(
        np.mean([outcome.squared_overlap for outcome in outcomes], axis=0),
        np.mean([outcome.eigenvalues for outcome in outcomes], axis=0),
        float(np.mean([outcome.risk for outcome in outcomes])),
    )


class _Draw:
    """Draws of latent coordinates, labels and noise, to which readouts are fitted."""

    def __init__(
        self,
        channel: AdditiveChannel,
        found: SpectralPrediction,
        weights_of: tuple[np.ndarray, np.ndarray],
        label_map: LabelMap,
        dimension: int,
        fit: Fit,
        rows: int,
        rng: np.random.Generator,
    ) -> None:
        self.channel, self.found, self.fit = channel, found, fit
        self.label_map, self.dimension = label_map, dimension
        p, self.rows = channel.n_directions, rows
        rows_of, noise, rng = rng.spawn(3)
        self.latent, self.labels = _drawn(channel, rows, rows_of)
        self.noise = noise.standard_normal((rows, p))
        self.weights = np.interp(self.labels, *weights_of)
        self.fresh = rng.standard_normal((rows, p)), rng.standard_normal((rows, p))

    def second_pass(self, components: np.ndarray) -> Deflated:
        """Predict the second pass if the first pass detects eigenvectors with these components."""
        fit, y, (z, fresh) = self.fit, self.labels, self.fresh
        p, count = components.shape
        before = Pass(components, self.found.parameters[:count])
        learned = before.coordinates(self.latent, self.noise[:, :count])
        leant = learned * before.leaning(self.weights)
        residual = y - fit(leant, y)(leant) if count else y
        T = apply_label_map(residual, self.label_map)
        # The second pass looks for the parts of the features orthogonal to the detected eigenvectors,
        # with the coordinates t = (1 - C C^T)^(-1/2) (z - C u)   (multi-index 27).
        left = np.eye(p) - components @ components.T
        half, inverse = _power(left, 0.5), _power(left, -0.5)
        t = (self.latent - leant @ components.T) @ inverse
        chance = self._given_eigenvectors(leant, t)
        T = T - chance @ T
        strengths, axes = np.linalg.eigh(((chance * T)[:, None] * t).T @ t)
        axes = oriented(axes[:, np.argsort(-np.abs(strengths))])
        law = LabelLaw(T, chance, (t @ axes) ** 2).merged(500)
        room, wanted = self.dimension - count, p - count
        after = span_overlaps(law, fit.samples, room, keep=wanted) if wanted else np.zeros(p)
        spectrum = label_weighted_spectrum(law, ratio=fit.samples / room, dimension=room)
        second = Pass((axes * np.sqrt(after))[:, :wanted], bulk_parameters(spectrum)[:wanted])
        further = second.coordinates(t, self.noise[:, count:]) * second.leaning(T)
        readout = fit(np.concatenate([leant, further], axis=1), y)
        learned = before.coordinates(z, fresh[:, :count])
        further = second.coordinates((z - learned @ components.T) @ inverse, fresh[:, count:])
        learned = np.concatenate([learned, further], axis=1)
        return Deflated(
            np.sum(components**2, axis=1) + (half @ axes) ** 2 @ after,
            np.concatenate([self.found.eigenvalues[:count], spectrum.eigenvalues[:wanted]]),
            _excess(self.channel, z, learned, readout, fit, self.rows),
        )

    def _given_eigenvectors(self, learned: np.ndarray, left: np.ndarray) -> np.ndarray:
        """Chance of each row in a sample whose second moment has the eigenvectors of the first pass."""
        # In the sample E[T u_j t_k] = 0, since u_j is an eigenvector and t_k orthogonal to it. Rows of a
        # fresh sample have B_jk = E[T u_j t_k], which a rotation by R_jk would remove: entries of this
        # sample's noise did so. They are the entries of the rotated coordinates   (multi-index 41).
        u, t, T = learned, left, self.weights[:, None]
        entries = (T * u).T @ t / self.rows
        gap = np.mean(T * t**2, axis=0) - np.mean(T * u**2, axis=0)[:, None]
        slope = entries * self.rows / (((T * u) ** 2).T @ t**2)
        turned = slope * np.clip(entries / gap, -0.5, 0.5)
        noise = (
            np.sum((u @ slope) * t, axis=1) + u**2 @ turned.sum(axis=1) - t**2 @ turned.sum(axis=0)
        )
        chance = np.maximum(1 - self.weights * noise + np.mean(self.weights * noise), 0.01)
        return np.asarray(chance / chance.sum())
