"""Base class of targets: samples, labels in chunks, and sources that are drawn again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, partial
from typing import Any

import numpy as np

from solvable.arrays import (
    Array,
    GeneratedSource,
    Source,
    as_source,
    check_integer,
    random_stream,
    to_numpy,
)
from solvable.errors import InvalidData, InvalidParameter
from solvable.teachers.readouts import Readout, ReadoutFunction, resolve_readout

CHUNK_ROWS = 4096
"""Number of rows that are mapped to latent features at a time."""


def draw_normals(dtype: Any, n_columns: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Draw standard normal inputs of the given type."""
    return rng.standard_normal((rows, n_columns), dtype=dtype)


def check_dtype(dtype: Any) -> np.dtype:
    """Return float32 or float64 as a NumPy dtype; raise InvalidParameter for other types."""
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise InvalidParameter(f"dtype is {kind.name}; allowed: float32, float64.")
    return kind


class LatentTarget(ABC):
    r"""A distribution over :math:`(x, y)` with known latent features and a scalar index.

    Subclasses are frozen dataclasses with the fields ``seed`` and ``readout``. They define the maps
    from a block of inputs to latent features, and from latent features to the index.
    """

    seed: int
    readout: str | ReadoutFunction
    label_noise: float = 0.0

    @property
    @abstractmethod
    def input_columns(self) -> int:
        """Number of columns of X."""

    @abstractmethod
    def _latent_block(self, block: np.ndarray) -> np.ndarray:
        """Latent features of a block of rows, float64."""

    @abstractmethod
    def _index_of(self, latent: np.ndarray) -> np.ndarray:
        """Index of latent features of shape (n, p)."""

    @cached_property
    def readout_function(self) -> Readout:
        """Centred readout with its Hermite coefficients."""
        return resolve_readout(self.readout)

    def latent(self, X: Array | Source) -> np.ndarray:
        """Compute latent features :math:`h_i(x)`, shape (n, p), in chunks of rows."""
        source = self._checked(X)
        blocks = [self._latent_block(to_numpy(block)) for _, block in source.chunks(CHUNK_ROWS)]
        return np.concatenate(blocks)

    def index(self, X: Array | Source) -> np.ndarray:
        """Compute the scalar index of samples, before the readout, in chunks of rows."""
        source = self._checked(X)
        values = np.empty(source.n_samples)
        for rows, block in source.chunks(CHUNK_ROWS):
            values[rows] = self._index_of(self._latent_block(to_numpy(block)))
        return values

    def label(self, index: np.ndarray) -> np.ndarray:
        """Apply the centred readout elementwise; float64."""
        return self.readout_function(index)

    def observed_label(self, index: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return labels with their noise; a target without noise draws no random numbers."""
        labels = self.label(index)
        if not self.label_noise:
            return labels
        return labels + self.label_noise * rng.standard_normal(labels.shape)

    def sample(
        self, n: int, rng: np.random.Generator | int, dtype: Any = np.float64
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw ``n`` samples X of the given type and labels y; the first rows do not depend on ``n``."""
        check_integer("n", n, 1)
        generator = random_stream(rng, "samples") if isinstance(rng, int) else rng
        X = draw_normals(check_dtype(dtype), self.input_columns, int(n), generator)
        return X, self.observed_label(self.index(X), generator)

    def source(
        self, n: int, seed: int, dtype: Any = np.float64
    ) -> tuple[GeneratedSource, np.ndarray]:
        """Return a source that draws samples from the seed at each reading, and the labels."""
        check_integer("n", n, 1)
        kind = check_dtype(dtype)
        columns = self.input_columns
        draw = partial(draw_normals, kind, columns)
        source = GeneratedSource(draw, int(n), columns, seed, kind)
        noise = random_stream(seed, "label noise")
        return source, self.observed_label(self.index(source), noise)

    def draw_latent(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw ``n`` samples chunk by chunk, and return their latent features, shape (n, p)."""
        parts = []
        for start in range(0, n, CHUNK_ROWS):
            rows = min(CHUNK_ROWS, n - start)
            block = draw_normals(np.dtype(np.float64), self.input_columns, rows, rng)
            parts.append(self._latent_block(block))
        return np.concatenate(parts)

    @cached_property
    def label_variance(self) -> float:
        """Variance of the label at this finite size, by a formula if one exists, or by draws."""
        return self.label_moments()[1]

    def label_moments(self, draws: int = 100_000) -> tuple[float, float, float]:
        """Mean, variance and standard error of the variance of the label, by Monte Carlo."""
        # Random numbers depend only on the seed. 100,000 draws give about 0.3 % for a bounded readout.
        latent = self.draw_latent(draws, random_stream(self.seed, "label moments"))
        labels = self.label(self._index_of(latent))
        deviations = (labels - labels.mean()) ** 2
        error = deviations.std() / np.sqrt(draws)
        return float(labels.mean()), float(deviations.mean()), float(error)

    def _checked(self, X: Array | Source) -> Source:
        source = as_source(X)
        if source.n_columns != self.input_columns:
            raise InvalidData(
                f"X has {source.n_columns} columns; allowed: {self.input_columns}, one per input."
            )
        return source
