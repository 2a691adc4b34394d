"""What every target shares: drawing samples, labels in chunks, regenerated sources."""

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
"""Rows that are mapped to latent features at a time."""


def draw_normals(dtype: Any, n_columns: int, rows: int, rng: np.random.Generator) -> np.ndarray:
    """Draw standard normal inputs, in the type asked for (float32 is drawn as float32)."""
    return rng.standard_normal((rows, n_columns), dtype=dtype)


def check_dtype(dtype: Any) -> np.dtype:
    """Return float32 or float64 as a NumPy dtype, refuse anything else."""
    kind = np.dtype(dtype)
    if kind not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise InvalidParameter(f"dtype is {kind.name}; allowed: float32, float64.")
    return kind


class LatentTarget(ABC):
    r"""A distribution over :math:`(x, y)` with known latent features and a scalar index.

    Subclasses are frozen dataclasses with the fields ``seed`` and ``readout``; they say how a
    block of inputs becomes latent features and how these become the index.
    """

    seed: int
    readout: str | ReadoutFunction

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
        """The centred readout with its Hermite coefficients."""
        return resolve_readout(self.readout)

    def latent(self, X: Array | Source) -> np.ndarray:
        """Latent features :math:`h_i(x)` of samples, (n, p), in chunks; nothing is n x D."""
        source = self._checked(X)
        blocks = [self._latent_block(to_numpy(block)) for _, block in source.chunks(CHUNK_ROWS)]
        return np.concatenate(blocks)

    def index(self, X: Array | Source) -> np.ndarray:
        """Scalar index of samples before the readout, in chunks of O(chunk p) memory."""
        source = self._checked(X)
        values = np.empty(source.n_samples)
        for rows, block in source.chunks(CHUNK_ROWS):
            values[rows] = self._index_of(self._latent_block(to_numpy(block)))
        return values

    def label(self, index: np.ndarray) -> np.ndarray:
        """Label of an index: the centred readout, elementwise, float64."""
        return self.readout_function(index)

    def sample(
        self, n: int, rng: np.random.Generator | int, dtype: Any = np.float64
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw ``n`` samples, X in the type asked for and y; the first do not depend on ``n``."""
        check_integer("n", n, 1)
        generator = random_stream(rng, "samples") if isinstance(rng, int) else rng
        X = draw_normals(check_dtype(dtype), self.input_columns, int(n), generator)
        return X, self.label(self.index(X))

    def source(
        self, n: int, seed: int, dtype: Any = np.float64
    ) -> tuple[GeneratedSource, np.ndarray]:
        """Samples that are drawn again from the seed at each reading, and their labels."""
        check_integer("n", n, 1)
        kind = check_dtype(dtype)
        columns = self.input_columns
        draw = partial(draw_normals, kind, columns)
        source = GeneratedSource(draw, int(n), columns, seed, kind)
        return source, self.label(self.index(source))

    def draw_latent(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Latent features of ``n`` fresh samples, shape (n, p), inputs drawn chunk by chunk."""
        parts = []
        for start in range(0, n, CHUNK_ROWS):
            rows = min(CHUNK_ROWS, n - start)
            block = draw_normals(np.dtype(np.float64), self.input_columns, rows, rng)
            parts.append(self._latent_block(block))
        return np.concatenate(parts)

    @cached_property
    def label_variance(self) -> float:
        """Variance of the label at this finite size: a formula where there is one, else draws."""
        return self.label_moments()[1]

    def label_moments(self, draws: int = 100_000) -> tuple[float, float, float]:
        """Mean, variance and standard error of the variance of the label, by Monte Carlo."""
        # The stream depends on the seed alone; 100,000 draws give near 0.3 % for a bounded readout.
        latent = self.draw_latent(draws, random_stream(self.seed, "label moments"))
        labels = self.label(self._index_of(latent))
        deviations = (labels - labels.mean()) ** 2
        error = deviations.std() / np.sqrt(draws)
        return float(labels.mean()), float(deviations.mean()), float(error)

    def _checked(self, X: Array | Source) -> Source:
        source = as_source(X)
        if source.n_columns != self.input_columns:
            raise InvalidData(
                f"X has {source.n_columns} columns; this target has {self.input_columns} inputs."
            )
        return source
