"""Latent features of samples, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from solvable.arrays import ArraySource, Source
from solvable.errors import InvalidData
from solvable.fitting.rows import Part
from solvable.models.sequential.spectral_layer import SpectralLayer

PREDICT_ROWS = 4096
"""Rows that are projected at a time."""

STORED_LATENT_BYTES = 64_000_000
"""Latent features of the held-back rows that are kept; more are computed again when needed."""


def latent_chunks(
    source: Source, layers: list[SpectralLayer], rows: int = PREDICT_ROWS
) -> Iterator[tuple[slice, np.ndarray]]:
    """Latent features of the last of some layers, chunk by chunk.

    Parameters
    ----------
    source : Source
        Samples.
    layers : list of SpectralLayer
        Applied one after the other.
    rows : int
        Rows per chunk.

    Yields
    ------
    tuple of (slice, ndarray of shape (rows, k))
        Rows and latent features.

    Raises
    ------
    InvalidData
        If samples are not finite, which is not known of a source before it is read.
    """
    for part, block in source.chunks(rows):
        latent: Any = block
        for layer in layers:
            latent = layer.transform(latent)
        if not np.isfinite(latent).all():
            raise InvalidData(
                f"some of the samples {part.start} to {part.stop - 1} are NaN, infinite, or too "
                "large for their type; allowed: finite numbers. Drop or impute such rows."
            )
        yield part, latent


class StoredLatent:
    """Latent features and labels of some rows, kept if small, computed again if not.

    Parameters
    ----------
    part : Part
        Samples and labels.
    layers : list of SpectralLayer
        Applied one after the other.
    n_latent : int
        Latent features of the last of them.
    """

    def __init__(self, part: Part, layers: list[SpectralLayer], n_latent: int) -> None:
        self.part = part
        self.layers = layers
        self.small = 8 * n_latent * part.labels.size <= STORED_LATENT_BYTES
        self.stored: list[tuple[np.ndarray, np.ndarray]] = []

    def __iter__(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        if self.stored:
            yield from self.stored
            return
        for rows, block in latent_chunks(self.part.source, self.layers):
            pair = block, self.part.labels[rows]
            if self.small:
                self.stored.append(pair)
            yield pair


def inputs_of_next_layer(
    part: Part, layers: list[SpectralLayer]
) -> tuple[Part, np.ndarray, np.ndarray]:
    """Latent features of the rows of a deeper layer, centred and scaled, and how.

    Parameters
    ----------
    part : Part
        Samples and labels of that layer.
    layers : list of SpectralLayer
        The layers before it.

    Returns
    -------
    part : Part
        Latent features in memory, n x k in the floating type of the samples, and the labels.
    centre, scale : ndarray of shape (k,)
        Mean and standard deviation that were taken out.
    """
    width = layers[-1].eigenvalues.size
    kind = np.float32 if "float32" in str(part.source.dtype) else np.float64
    latent = np.empty((part.labels.size, width), dtype=kind)
    for rows, block in latent_chunks(part.source, layers):
        latent[rows] = block
    centre = latent.mean(axis=0, dtype=np.float64)
    scale = latent.std(axis=0, dtype=np.float64)
    scale[scale == 0] = 1.0
    latent -= centre
    latent /= scale
    return Part(ArraySource(latent), part.labels), centre, scale
