"""One spectral layer: directions of a moment operator with eigenvalues outside its bulk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
"""Largest size in bytes of latent features of held-back rows that are stored and not recomputed."""


@dataclass(frozen=True)
class LayerSettings:
    """Settings of one spectral layer, as in `LayerwiseSpectralRegressor`."""

    n_directions: int | Literal["auto"]
    selection: Literal["outliers", "forced", "modulus"]
    label_map: LabelMap
    correction: Correction
    solver: Literal["auto", "power-iteration"] | RouteName
    tolerance: float
    max_products: int | None


@dataclass(frozen=True)
class SpectralLayer:
    """Directions of one layer, with their eigenvalues and the edges used for the selection."""

    features: HermiteFeatures  # Hermite features F of the layer's inputs
    centre: np.ndarray | None  # the inputs are (x - centre) / scale; None for the first layer
    scale: np.ndarray | None
    directions: np.ndarray  # orthonormal columns, most significant first, (D, k)
    eigenvalues: np.ndarray  # eigenvalues of the directions, (k,)
    outliers: np.ndarray  # True for each eigenvalue beyond the bulk; all True unless forced
    converged: np.ndarray  # True where the solver reached its tolerance, (k,)
    noise_edges: Edges  # edges of the noise, with a margin exceeded in 1 of 100 cases a side
    bulk_edges: Edges  # edges of the noise plus the population bulk implied by the features
    noise_scale: float  # standard deviation s of the noise spectrum
    noise_centre: float  # mean of the noise spectrum, O(1/d); zero for the corrected operator
    rejected: tuple[Rejection, ...]  # requested directions that do not count as features
    products: int  # number of products with the operator
    route: RouteName | Literal["power-iteration"]
    n_samples: int  # number of rows used for the fit

    def transform(self, X: Array) -> np.ndarray:
        """Return latent features <A_i, F(x)>, shape (n, k)."""
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
    seen: Callable[[MomentOperator], None] | None = None,
) -> SpectralLayer:
    """Fit the directions of one layer to inputs that are already centred and scaled."""
    features = HermiteFeatures(degree, part.source.n_columns)
    wanted = None if settings.n_directions == "auto" else settings.n_directions
    if wanted is not None and wanted > features.n_features:
        raise InvalidParameter(
            f"n_directions is {wanted}, more than the D = {features.n_features} features of degree "
            f"{degree} of the inputs (n_features={features.dimension}); allowed: 1 to "
            f"{features.n_features}."
        )
    # The operator is C = (1/n) sum_mu T_mu (F F^T - I)   (sequential 2; arXiv:2605.14567, Equation 2.6).
    # For correction="wick" its components of lower Hermite degree are subtracted   (sequential 20).
    operator = MomentOperator(
        part.source,
        apply_label_map(part.labels, settings.label_map),
        features,
        correction=settings.correction,
    )
    if seen is not None:
        seen(operator)
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
    """Eigenpairs at the two ends of the spectrum, and the selection among these eigenpairs."""
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

    # Edges are slow to compute. They are computed only when a further pair has converged, or after 25 %
    # more products.
    looked_at = 0, 0

    def enough(pairs: Eigenpairs) -> bool:
        nonlocal looked_at
        converged = int(np.count_nonzero(pairs.converged))
        if converged == looked_at[0] and pairs.products < 1.25 * looked_at[1] + 8:
            return False
        looked_at = converged, pairs.products
        return is_enough(pairs, select(pairs), wanted, forced=forced)

    # For n_directions="auto" the search starts with 16 candidates per side. The number doubles as long as
    # all candidates of a side are outside the bulk.
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
        # Samples are checked for finite values here, because a source is read only now.
        if not np.isfinite(latent).all():
            raise InvalidData(
                f"some of the samples {part.start} to {part.stop - 1} are NaN, infinite, or too "
                "large for their type; allowed: finite numbers. Drop or impute such rows."
            )
        yield part, block, latent


def latent_chunks(
    source: Source, layers: list[SpectralLayer]
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield the row range and the last layer's latent features, shape (rows, k), of each chunk."""
    for part, _, latent in _latent_blocks(source, layers):
        yield part, latent


class StoredLatent:
    """Latent features and labels of given rows, stored if small and recomputed otherwise."""

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
    """Inputs of the next layer with unit variance, and centre and scale of the latent features."""
    # All latent features and the label depend on the norm of x, so the mean of T (h h^T - I) would have
    # its largest component along the identity. Latent features divided by a power of the norm are nearly
    # Gaussian. Directions are computed from the divided features and applied to the original features.
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
    # After l layers the features have degree 2^(l - 1) in the features of the first layer. Rows with x
    # = 0 are not divided.
    powers = 2.0 ** (len(layers) - 2)
    shared = np.where(norms > 0, (norms / norms.mean()) ** powers, 1.0) if norms.any() else 1.0
    latent /= np.asarray(shared)[..., None]
    latent -= latent.mean(axis=0)
    deviation = latent.std(axis=0)
    latent /= np.where(deviation > 0, deviation, 1.0)
    return Part(ArraySource(latent), part.labels), centre, scale
