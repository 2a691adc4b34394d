"""The learner in the coordinates it has found: a few Gaussians in place of all inputs."""

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
"""Fresh draws behind a risk, which scatters by a percent of itself."""


@dataclass(frozen=True)
class Fit:
    """How a readout is fitted."""

    kind: ReadoutName
    n_neurons: int
    regularisation: Regularisation
    samples: int

    def rows(self, directions: int) -> int:
        """Draws that stand for the samples: their sums of squares cost two thousand million."""
        features = count_features(self.kind, directions, self.n_neurons)
        return min(self.samples, int(np.clip(2e9 / features**2, 4_000, 60_000)))

    def __call__(self, learned: np.ndarray, labels: np.ndarray) -> Readout:
        """Readout of learned coordinates (m, k)."""
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
    """Directions of one pass: what each points to, how well, and how it leans to its samples."""

    towards: np.ndarray  # combinations of true directions, (p, k)
    overlap: np.ndarray  # squared, with the span, (k,)
    parameters: np.ndarray  # lambda* of each, (k,)

    def coordinates(self, latent: np.ndarray, noise: np.ndarray) -> np.ndarray:
        """Coordinates of fresh samples (m, k), from latent ones and as many normal numbers."""
        q = self.overlap
        return np.asarray(np.sqrt(q) * (latent @ self.towards) + np.sqrt(1 - q) * noise)

    def leaning(self, weights: np.ndarray) -> np.ndarray:
        """Factor of the coordinates of a sample that the direction was found with, (m, k)."""
        # Leaving sample i out, <u, x_i> = lambda* / (lambda* - T_i) <u_-i, x_i> (derived: D changes by
        # T_i x_i x_i^T / n, a matrix of rank one)
        return np.asarray(self.parameters / (self.parameters - weights[:, None]))


def first_pass(found: SpectralPrediction, count: int | None = None) -> Pass:
    """The directions of the labels themselves, the farthest few from the bulk."""
    kept = slice(count)
    return Pass(found.rotation[:, kept], found.span_overlap[kept], found.parameters[kept])


def one_shot_risk(
    channel: AdditiveChannel,
    found: SpectralPrediction,
    weights_of: tuple[np.ndarray, np.ndarray],
    fit: Fit,
    rng: np.random.Generator,
) -> float:
    """Excess risk of a readout fitted to the samples that found its directions."""
    directions = first_pass(found)
    k = directions.overlap.size
    rows = fit.rows(k)
    risks = []
    # Few samples are drawn more often.
    for _ in range(int(np.clip(8_000 // rows, 1, 20))):
        z, y = _drawn(channel, rows, rng)
        learned = directions.coordinates(z, rng.standard_normal((rows, k)))
        readout = fit(learned * directions.leaning(np.interp(y, *weights_of)), y)
        z = rng.standard_normal((TEST_ROWS, channel.n_directions))
        learned = directions.coordinates(z, rng.standard_normal((TEST_ROWS, k)))
        risks.append(_excess(channel, z, learned, readout, fit, rows))
    return float(np.mean(risks))


def _drawn(
    channel: AdditiveChannel, rows: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    z = rng.standard_normal((rows, channel.n_directions))
    return z, channel.sample(z, rng)


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
        # Fewer draws than samples: what that adds to the variance of the fit is taken off,
        # (residual variance) * (degrees of freedom) * (1 / rows - 1 / samples).
        freedom = readout.degrees_of_freedom * (1 / rows - 1 / fit.samples)
        risk -= (risk + channel.noise) * freedom / (1 + freedom)
    return max(risk, 0.0)


@dataclass(frozen=True)
class Deflated:
    """Overlaps of true directions, and the risk, after a second pass on residuals."""

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
    """A second pass on residuals of what the first detects, for even links (derived)."""
    draw = _Draw(channel, found, weights_of, label_map, dimension, fit, rng)
    # How many directions the first pass counts varies from sample to sample.
    counts = found.count_law(dimension)
    outcomes = [(chance, draw.second_pass(count)) for count, chance in counts.items()]
    return Deflated(
        sum(chance * outcome.squared_overlap for chance, outcome in outcomes),  # type: ignore[arg-type]
        sum(chance * outcome.eigenvalues for chance, outcome in outcomes),  # type: ignore[arg-type]
        float(sum(chance * outcome.risk for chance, outcome in outcomes)),
    )


class _Draw:
    """Samples as the directions of the first pass see them, for any number of these that is kept."""

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
        self.latent, self.labels = _drawn(channel, self.rows, rng)
        self.noise = rng.standard_normal((self.rows, p))
        self.weights = np.interp(self.labels, *weights_of)
        self.fresh = rng.standard_normal((TEST_ROWS, p)), rng.standard_normal((TEST_ROWS, p))

    def second_pass(self, count: int) -> Deflated:
        """Residuals of the readout on so many directions, and what their second moment adds."""
        found, fit, y = self.found, self.fit, self.labels
        before = first_pass(found, count)
        learned = before.coordinates(self.latent, self.noise[:, :count])
        leant = learned * before.leaning(self.weights)
        residual = y - fit(leant, y)(leant) if count else y
        T = apply_label_map(residual, self.label_map)
        # What a direction found leaves of its own is one more direction, of which the samples that
        # found it hold the less: t = (z - sqrt(q) u) / sqrt(1 - q)
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
