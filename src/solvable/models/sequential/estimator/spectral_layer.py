"""One spectral layer: directions of a moment operator that stand out of its bulk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from solvable.arrays import Array, ArraySource, Source, to_numpy
from solvable.errors import InvalidData, InvalidParameter
from solvable.fitting.row_subsets import Part
from solvable.models.sequential.estimator.power_iteration import iterated_pairs
from solvable.models.sequential.estimator.selection import (
    Rejection,
    Selection,
    is_enough,
    select_outliers,
)
from solvable.moment_spectrum.bulk_edges import Edges, PredictedBulk
from solvable.operators import HermiteFeatures, MomentOperator, apply_label_map, leading_eigenpairs
from solvable.operators.base import Correction
from solvable.operators.blocks import rows_per_block
from solvable.operators.eigen import Eigenpairs
from solvable.operators.feature_map import floating
from solvable.operators.labels import LabelMap
from solvable.operators.routes import RouteName

STORED_LATENT_BYTES = 64_000_000
"""Latent features of the held-back rows that are kept; more are computed again when needed."""


@dataclass(frozen=True)
class LayerSettings:
    """What one spectral layer is asked for, as in `LayerwiseSpectralRegressor`."""

    n_directions: int | Literal["auto"]
    selection: Literal["outliers", "forced", "modulus"]
    label_map: LabelMap
    correction: Correction
    solver: Literal["auto", "power-iteration"] | RouteName
    tolerance: float
    max_products: int | None


@dataclass(frozen=True)
class SpectralLayer:
    """Directions found in one layer, with what they were tested against."""

    features: HermiteFeatures  # F, of the inputs of this layer
    centre: np.ndarray | None  # the inputs are (x - centre) / scale; None for the first layer
    scale: np.ndarray | None
    directions: np.ndarray  # orthonormal columns, most significant first, (D, k)
    eigenvalues: np.ndarray  # (k,)
    outliers: np.ndarray  # whether each lies beyond the bulk; all do unless the number was forced
    converged: np.ndarray  # whether the solver reached its tolerance, (k,)
    noise_edges: Edges  # with a margin that noise exceeds in one of a hundred cases per side
    bulk_edges: Edges  # the same with the population bulk that the features predict
    noise_scale: float  # s, the standard deviation of the noise spectrum
    noise_centre: float  # mean of it: zero up to O(1/d), and exactly for the corrected operator
    rejected: tuple[Rejection, ...]  # directions asked for that are no features, and why
    products: int  # with the operator
    route: RouteName | Literal["power-iteration"]
    n_samples: int  # rows that the layer was fitted to

    def transform(self, X: Array) -> np.ndarray:
        """Latent features <A_i, F(x)>, shape (n, k)."""
        if not self.directions.shape[1]:
            return np.empty((int(X.shape[0]), 0))
        inputs = X if self.centre is None else (X - self.centre) / self.scale
        return to_numpy(self.features.project(floating(inputs), self.directions)).astype(np.float64)


def fit_spectral_layer(
    part: Part,
    degree: int,
    settings: LayerSettings,
    rng: np.random.Generator,
    *,
    centre: np.ndarray | None = None,
    scale: np.ndarray | None = None,
) -> SpectralLayer:
    """Directions of one layer, whose inputs are centred and scaled already."""
    features = HermiteFeatures(degree, part.source.n_columns)
    wanted = None if settings.n_directions == "auto" else settings.n_directions
    if wanted is not None and wanted > features.n_features:
        raise InvalidParameter(
            f"n_directions is {wanted}, more than the D = {features.n_features} features of degree "
            f"{degree} of the inputs (n_features={features.dimension}); allowed: 1 to "
            f"{features.n_features}."
        )
    operator = MomentOperator(
        part.source,
        apply_label_map(part.labels, settings.label_map),
        features,
        correction=settings.correction,
    )
    bulk = PredictedBulk(operator, rng)
    pairs, selection = _search(operator, bulk, settings, wanted, rng)
    return SpectralLayer(
        features=features,
        centre=centre,
        scale=scale,
        directions=np.ascontiguousarray(pairs.vectors[:, selection.order]),
        eigenvalues=pairs.values[selection.order],
        outliers=selection.outliers,
        converged=pairs.converged[selection.order],
        noise_edges=selection.edges.noise,
        bulk_edges=selection.edges.bulk,
        noise_scale=bulk.noise_scale,
        noise_centre=selection.edges.centre,
        rejected=selection.rejected,
        products=operator.products,
        route=pairs.route,
        n_samples=operator.n_samples,
    )


def _search(
    operator: MomentOperator,
    bulk: PredictedBulk,
    settings: LayerSettings,
    wanted: int | None,
    rng: np.random.Generator,
) -> tuple[Eigenpairs, Selection]:
    """Eigenpairs of both ends, enough of them, and the selection among them."""
    size = operator.shape[0]
    forced, solver = settings.selection != "outliers", settings.solver

    def select(pairs: Eigenpairs) -> Selection:
        return select_outliers(
            pairs,
            bulk.edges,
            corrected=bulk.corrected_values(pairs.values, pairs.vectors),
            wanted=wanted,
            forced=forced,
            by_modulus=settings.selection == "modulus",
        )

    if solver == "power-iteration":
        assert wanted is not None
        pairs = iterated_pairs(operator, wanted, settings.tolerance, rng)
        return pairs, select(pairs)

    # Edges are not free: they are looked at when one more pair has converged, and now and then.
    looked_at = 0, 0

    def enough(pairs: Eigenpairs) -> bool:
        nonlocal looked_at
        converged = int(np.count_nonzero(pairs.converged))
        if converged == looked_at[0] and pairs.products < 1.25 * looked_at[1] + 8:
            return False
        looked_at = converged, pairs.products
        return is_enough(pairs, select(pairs), wanted, forced=forced)

    # Where any number is allowed, 16 candidates per side, doubled while all of them are features.
    upper = lower = 16 if wanted is None else wanted
    while True:
        n_upper, n_lower = min(upper, size - size // 2), min(lower, size // 2)
        looked_at = 0, 0
        pairs = leading_eigenpairs(
            operator,
            n_upper,
            n_lower,
            route=solver,
            tolerance=settings.tolerance,
            max_products=settings.max_products,
            rng=rng,
            enough=enough,
        )
        selection = select(pairs)
        outside = selection.distance > 0
        full = outside[:n_upper].all() or (n_lower > 0 and outside[n_upper:].all())
        if wanted is not None or not full or n_upper + n_lower >= size:
            return pairs, selection
        upper, lower = 2 * upper, 2 * lower


def _latent_blocks(
    source: Source, layers: list[SpectralLayer]
) -> Iterator[tuple[slice, Array, np.ndarray]]:
    first = layers[0].features
    bytes_per_row = first.row_bytes(layers[0].directions.shape[1])
    for part, block in source.chunks(rows_per_block(source, 4096, bytes_per_row)):
        latent: Any = block
        for layer in layers:
            latent = layer.transform(latent)
        # Which samples are finite is not known of a source before it is read.
        if not np.isfinite(latent).all():
            raise InvalidData(
                f"some of the samples {part.start} to {part.stop - 1} are NaN, infinite, or too "
                "large for their type; allowed: finite numbers. Drop or impute such rows."
            )
        yield part, block, latent


def latent_chunks(
    source: Source, layers: list[SpectralLayer]
) -> Iterator[tuple[slice, np.ndarray]]:
    """Rows and latent features of the last of some layers, shape (rows, k), chunk by chunk."""
    for part, _, latent in _latent_blocks(source, layers):
        yield part, latent


class StoredLatent:
    """Latent features and labels of some rows, kept if small, computed again if not."""

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
    """Latent features of the rows of a deeper layer, each of unit variance; centre and scale."""
    # All latent features share the norm of x, the label's too: T (h h^T - I) would have its largest
    # mean along the identity, however random the features. What is left of them at equal norms is
    # nearly Gaussian. Directions are found there and applied to the features themselves.
    width = layers[-1].eigenvalues.size
    kind = np.float32 if "float32" in str(part.source.dtype) else np.float64
    latent = np.empty((part.labels.size, width), dtype=kind)
    norms = np.empty(part.labels.size)
    for rows, block, features in _latent_blocks(part.source, layers):
        latent[rows] = features
        norms[rows] = to_numpy(layers[0].features.squared_norm(floating(block)))
    centre = latent.mean(axis=0, dtype=np.float64)
    scale = latent.std(axis=0, dtype=np.float64)
    scale[scale == 0] = 1.0
    # Of degree 2^(l - 1) in the features of the first layer after l of them; rows of x = 0 stay.
    powers = 2.0 ** (len(layers) - 2)
    shared = np.where(norms > 0, (norms / norms.mean()) ** powers, 1.0) if norms.any() else 1.0
    latent /= np.asarray(shared)[..., None]
    latent -= latent.mean(axis=0)
    deviation = latent.std(axis=0)
    latent /= np.where(deviation > 0, deviation, 1.0)
    return Part(ArraySource(latent), part.labels), centre, scale
