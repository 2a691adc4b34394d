"""Predict the learner's risk from Gaussian draws of the few coordinates that it learns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from solvable.fitting.ridge import Regularisation
from solvable.message_passing.channels import AdditiveChannel
from solvable.models.multi_index.overlaps import (
    SpectralPrediction,
    bulk_parameters,
    span_overlaps,
)
from solvable.models.multi_index.readout import Readout, ReadoutName, count_features, fit_readout
from solvable.operators.labels import LabelMap, apply_label_map
from solvable.spectra.label_law import LabelLaw
from solvable.spectra.label_weighted import label_weighted_spectrum

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
    """Directions of one pass, their overlaps, and their dependence on the training samples."""

    towards: np.ndarray  # true directions combined in each eigenvector, (p, k)
    overlap: np.ndarray  # squared projection of each combination on the span, (k,)
    parameters: np.ndarray  # lambda* of each eigenvector, (k,)

    def coordinates(self, latent: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Coordinates of fresh samples (m, k), from latent coordinates and normal noise."""
        # coordinate sqrt(q) <v, z> + sqrt(1 - q) xi   (multi-index 26)
        q = self.overlap
        return np.asarray(np.sqrt(q) * (latent @ self.towards) + np.sqrt(1 - q) * noise)

    def leaning(self, weights: np.ndarray) -> np.ndarray:
        """Ratio of a training sample's coordinates to those of a fresh sample, (m, k)."""
        # <u, x_i> = lambda* / (lambda* - T_i) <u_-i, x_i>, where the eigenvector u_-i is computed without
        # sample i   (multi-index 25)
        return np.asarray(self.parameters / (self.parameters - weights[:, None]))


def first_pass(found: SpectralPrediction, count: int | None = None) -> Pass:
    """Directions of the first pass: the `count` directions farthest from the bulk."""
    kept = slice(count)
    return Pass(found.rotation[:, kept], found.span_overlap[kept], found.parameters[kept])


def one_shot_risk(
    channel: AdditiveChannel,
    found: SpectralPrediction,
    weights_of: tuple[np.ndarray, np.ndarray],
    fit: Fit,
    rng: np.random.Generator,
) -> float:
    """Excess risk of a readout that is fitted to the samples which determined the directions."""
    # excess risk R = E[(f(z) - readout(coordinates))²]   (multi-index 26)
    directions = first_pass(found)
    k = directions.overlap.size
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
    draw = _Draw(channel, found, weights_of, label_map, dimension, fit, rng)
    # The number of directions that the first pass detects varies between samples.
    counts = found.count_law(dimension)
    outcomes = [(chance, draw.second_pass(count)) for count, chance in counts.items()]
    return Deflated(
        sum(chance * outcome.squared_overlap for chance, outcome in outcomes),  # type: ignore[arg-type]
        sum(chance * outcome.eigenvalues for chance, outcome in outcomes),  # type: ignore[arg-type]
        float(sum(chance * outcome.risk for chance, outcome in outcomes)),
    )


class _Draw:
    """Draws of latent coordinates, labels and noise, shared by all numbers of detected directions."""

    def __init__(
        self,
        channel: AdditiveChannel,
        found: SpectralPrediction,
        weights_of: tuple[np.ndarray, np.ndarray],
        label_map: LabelMap,
        dimension: int,
        fit: Fit,
        rng: np.random.Generator,
    ) -> None:
        self.channel, self.found, self.fit = channel, found, fit
        self.label_map, self.dimension = label_map, dimension
        p = channel.n_directions
        self.rows = min(max(fit.rows(p), 20_000), 40_000)
        rows_of, noise, rng = rng.spawn(3)
        self.latent, self.labels = _drawn(channel, self.rows, rows_of)
        self.noise = noise.standard_normal((self.rows, p))
        self.weights = np.interp(self.labels, *weights_of)
        self.fresh = rng.standard_normal((TEST_ROWS, p)), rng.standard_normal((TEST_ROWS, p))

    def second_pass(self, count: int) -> Deflated:
        """Predict the second pass if the first pass detects `count` directions."""
        found, fit, y = self.found, self.fit, self.labels
        before = first_pass(found, count)
        learned = before.coordinates(self.latent, self.noise[:, :count])
        leant = learned * before.leaning(self.weights)
        residual = y - fit(leant, y)(leant) if count else y
        T = apply_label_map(residual, self.label_map)
        # The error of a detected direction is treated as one more direction, with the coordinate
        # t = (z - sqrt(q) u) / sqrt(1 - q). If the second pass finds this direction with the overlap
        # q_t, the total overlap is q + (1 - q) q_t   (multi-index 27).
        left, q = self.latent @ found.rotation, before.overlap
        left[:, :count] -= np.sqrt(q) * leant
        left[:, :count] /= np.sqrt(np.maximum(1 - q, 1e-9))
        law = LabelLaw.from_draws(T, left**2)
        room = self.dimension - count
        after = span_overlaps(law, fit.samples, room, keep=found.rotation.shape[1] - count)
        spectrum = label_weighted_spectrum(law, ratio=fit.samples / room, dimension=room)
        overlap = after.copy()
        overlap[:count] = q + (1 - q) * after[:count]
        second = Pass(found.rotation[:, count:], after[count:], bulk_parameters(spectrum)[count:])
        further = second.coordinates(self.latent, self.noise[:, count:]) * second.leaning(T)
        readout = fit(np.concatenate([leant, further], axis=1), y)
        z, noise = self.fresh
        learned = np.concatenate(
            [
                before.coordinates(z, noise[:, :count]),
                second.coordinates(z, noise[:, count:]),
            ],
            axis=1,
        )
        return Deflated(
            found.rotation**2 @ overlap,
            np.concatenate([found.eigenvalues[:count], spectrum.eigenvalues[count:]]),
            _excess(self.channel, z, learned, readout, fit, self.rows),
        )
