"""Base of the layer-wise filtered estimators: checks, scaling, default blocks."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.multiclass import type_of_target
from sklearn.utils.validation import check_is_fitted

from solvable.arrays import Array, check_integer, is_integer, is_tensor, namespace, to_numpy
from solvable.errors import InvalidParameter, NoFeatureFound, unknown_choice
from solvable.fitting.inputs import seed_from, validate_data, validated_tensor
from solvable.fitting.ridge import Regularisation, RidgeFit
from solvable.fitting.shrinkage import oracle_shrinkage, shrunk
from solvable.networks.blocks import Block, LabelCode, Reduce, Width, check_blocks
from solvable.networks.filters import FilterReport, FilterSettings, FilterSolver, MultiClass
from solvable.networks.in_memory_fit import (
    FitSettings,
    NetworkFit,
    check_images,
    fit_in_memory,
)
from solvable.networks.layers import Network, Standardise, Whiten
from solvable.networks.permutation import DRAWS
from solvable.networks.significance import FIRST_RATIO

Scaling: TypeAlias = Literal["auto", "columns", "whitened", "global", "none"]
"""Standardisation of samples: each column, each column and without correlations, all columns by one
mean and deviation, or none; "auto": all columns together if they share their bounds, as pixels do, else
each column."""

SCALINGS = ("auto", "columns", "whitened", "global", "none")

KERNEL_SAMPLES = 4000  # largest number of samples for which the default network is infinitely wide
DEFAULT_WIDTH = 2000  # default width of a lift for larger samples, and for streams


def default_blocks(n_samples: int | None) -> list[Block]:
    """Default blocks: lift, filter of significant directions, lift; infinitely wide for small n."""
    small = n_samples is not None and n_samples <= KERNEL_SAMPLES
    width = math.inf if small else DEFAULT_WIDTH
    # Residual labels are not available in a stream.
    return [Block(None, width), filtered_block(width, residual_labels=n_samples is not None)]


def filtered_block(width: Width, *, residual_labels: bool = True) -> Block:
    """Default block: filter centred features, first moments included; then lift them with the inputs."""
    # On planted directions biases of 0.3 to 1 give the same error.
    return Block(
        "auto",
        width,
        first_moment=True,
        centre_features=True,
        residual_labels=residual_labels,
        skip="auto",
        bias=1.0,
    )


class NeuralLoFiBase(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Parameters and transformation of the layer-wise filtered estimators."""

    filters_: tuple[FilterReport, ...]
    network_: Network
    readout_: RidgeFit | None
    n_features_in_: int

    def __init__(
        self,
        blocks: Sequence[Block] | None = None,
        final_reduce: Reduce = None,
        scaling: Scaling = "auto",
        image_shape: tuple[int, int, int] | None = None,
        multiclass: MultiClass = "sum-of-squares",
        centre_labels: bool = False,
        label_map: Literal["identity", "tanh"] = "identity",
        solver: FilterSolver = "auto",
        regularisation: Regularisation = "leave-one-out",
        null_replicates: int = 3,
        random_state: Any = None,
    ) -> None:
        self.blocks = blocks
        self.final_reduce = final_reduce
        self.scaling = scaling
        self.image_shape = image_shape
        self.multiclass = multiclass
        self.centre_labels = centre_labels
        self.label_map = label_map
        self.solver = solver
        self.regularisation = regularisation
        self.null_replicates = null_replicates
        self.random_state = random_state

    def _settings(self, n_samples: int | None, n_columns: int, *, readout: bool) -> FitSettings:
        """Check the settings of the fit; the default blocks depend on the sample size."""
        blocks = default_blocks(n_samples) if self.blocks is None else list(self.blocks)
        check_blocks(blocks)
        for name, allowed in (
            ("scaling", SCALINGS),
            ("multiclass", ("sum-of-squares", "alternating")),
            ("label_map", ("identity", "tanh")),
            ("solver", ("auto", "dense", "lanczos", "krylov")),
        ):
            if getattr(self, name) not in allowed:
                raise InvalidParameter(unknown_choice(name, getattr(self, name), allowed))
        check_integer("null_replicates", self.null_replicates, 1)

        def make(block: Block) -> FilterSettings | None:
            if block.reduce is None:
                return None
            return FilterSettings(
                block.reduce,
                block.first_moment,
                self.multiclass,
                self.solver,
                centred=block.centre_features,
                residual=block.residual_labels,
            )

        shape = self.image_shape
        settings = FitSettings(
            blocks=tuple(blocks),
            filters=tuple(map(make, blocks)),
            final=make(_final_block(self.final_reduce, blocks)),
            regularisation=self.regularisation,
            seed=seed_from(self.random_state),
            image_shape=None if shape is None else _checked_shape(shape),
            readout=readout,
            null_replicates=int(self.null_replicates),
        )
        check_images(settings, n_columns)
        return settings

    def _fit_arrays(self, X: Array, labels: np.ndarray, code: LabelCode, *, readout: bool) -> None:
        settings = self._settings(len(X), X.shape[1], readout=readout)
        first = standardise_columns(X, self.scaling)
        scaled = X if first is None else first.apply(X)
        fit = fit_in_memory(scaled, code.encode(labels), code, settings)
        layers = fit.network.layers if first is None else (first, *fit.network.layers)
        self._keep(replace(fit, network=Network(layers, fit.network.readout)))

    def _keep(self, fit: NetworkFit) -> None:
        self.network_ = fit.network
        self.filters_ = fit.filters
        self.readout_ = fit.readout
        for number, report in enumerate(fit.filters, start=1):
            if report.n_significant == 0 and not report.n_told:
                kept = len(report.eigenvalues)
                warnings.warn(
                    f"filter {number}: no direction is {FIRST_RATIO} times as strong as with random "
                    f"labels and stronger than with {DRAWS} permutations of the labels; the strongest "
                    f"{'one is' if kept == 1 else f'{kept} are'} kept. Use more samples or another "
                    "lift, or set reduce to a number to keep that many without a test.",
                    NoFeatureFound,
                    stacklevel=4,
                )

    def _validated_rows(self, X: Any) -> Array:
        check_is_fitted(self, "network_")
        if is_tensor(X):
            return validated_tensor(self, X, reset=False)
        return np.asarray(
            validate_data(self, X, reset=False, dtype=[np.float64, np.float32], order="C")
        )

    def transform(self, X: Any) -> np.ndarray:
        """Learned features (n, k): the inputs of the readout, or of the last kernel."""
        # Inputs that skip passes to the last lift are left out.
        rows = self._validated_rows(X)
        return to_numpy(self.network_.kept(rows))

    def _outputs(self, X: Any) -> np.ndarray:
        """Outputs of the readout as a NumPy array, shape (n, C)."""
        rows = self._validated_rows(X)
        return to_numpy(self.network_.outputs(rows))

    @property
    def _n_features_out(self) -> int:
        rows = np.zeros((1, self.n_features_in_))
        return int(self.network_.kept(rows).shape[1])


def _final_block(reduce: Reduce, blocks: Sequence[Block]) -> Block:
    """Make the last filter, with centred features if an earlier filter has them."""
    if reduce is None:
        return Block()
    return Block(reduce, None, centre_features=any(block.centre_features for block in blocks))


def _checked_shape(shape: Any) -> tuple[int, int, int]:
    sizes = tuple(shape) if isinstance(shape, Sequence) else ()
    if len(sizes) != 3 or not all(map(is_integer, sizes)):
        raise InvalidParameter(
            f"image_shape is {shape!r}; allowed: (height, width, channels), 3 integers of at least 1."
        )
    return int(sizes[0]), int(sizes[1]), int(sizes[2])


def labels_are_real(y: np.ndarray) -> bool:
    """Return True if labels are real numbers and not classes, by the rule of scikit-learn."""
    return str(type_of_target(y)).startswith("continuous")


def stratified_split(
    groups: np.ndarray, fraction: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Split rows into fitted and held-back ones: the same fraction of each group, rounded down."""
    order = rng.permutation(len(groups))
    parts = [order[groups[order] == group] for group in np.unique(groups)]
    apart = np.sort(np.concatenate([part[: int(fraction * len(part))] for part in parts]))
    return np.setdiff1d(np.arange(len(groups)), apart), apart


def chosen_classes(outputs: np.ndarray) -> np.ndarray:
    """Class numbers from outputs (n, C): by the sign for C = 1, else by the largest output."""
    if outputs.shape[1] == 1:
        return (outputs[:, 0] > 0).astype(int)
    return np.asarray(np.argmax(outputs, axis=1))


def real_code(y: np.ndarray, label_map: str = "identity") -> LabelCode:
    """Code that standardises real labels; raise :class:`InvalidData` if they are constant."""
    # Divide first: squares of labels near the largest float would overflow.
    size = float(np.max(np.abs(y), initial=0.0)) or 1.0
    deviation = float(np.std(y / size))
    # Rounding gives most constant labels a tiny nonzero deviation.
    scale = 0.0 if deviation <= 1e-14 else size * deviation
    mean = size * float(np.mean(y / size))
    return LabelCode(np.empty(0, dtype=int), mean, scale, bounded=label_map == "tanh")


def standardise_columns(X: Array, scaling: Scaling) -> Standardise | Whiten | None:
    """Fit the scaling layer of a network to samples (n, d); None for scaling "none"."""
    if scaling == "none":
        return None
    if scaling == "whitened":
        return whitened_columns(X)
    xp = namespace(X)
    # Sum in float64, as NumPy promotes; four rows of numbers are copied to the host.
    mean = xp.sum(X, axis=0, dtype=xp.float64) / len(X)
    variance = to_numpy(xp.mean((X - mean) ** 2, axis=0))
    mean = to_numpy(mean)
    bounds = (to_numpy(xp.min(X, axis=0)), to_numpy(xp.max(X, axis=0)))
    shared = scaling == "auto" and share_bounds(*bounds)
    return scaling_from(mean, variance, scaling, shared=shared)


def whitened_columns(X: Array) -> Standardise | Whiten:
    """Whitening matrix: columns over their deviations, times the inverse root of shrunk correlations."""
    first = standardise_columns(X, "columns")
    assert isinstance(first, Standardise)
    Z = first.apply(X)
    correlation = to_numpy(Z.T @ Z).astype(np.float64) / len(X)
    share = oracle_shrinkage(correlation, len(X))
    if share == 1.0:
        return first
    values, vectors = np.linalg.eigh(shrunk(correlation, share))
    root = (vectors / np.sqrt(np.maximum(values, 1e-12))) @ vectors.T
    return Whiten(first.mean, root / first.scale[:, None])


def share_bounds(lowest: np.ndarray, highest: np.ndarray) -> bool:
    """Return True if columns share a lower bound and half of them come near the largest upper bound."""
    # True for pixels: scaling each pixel by its own deviation makes those at the margin of images as
    # large as the others, which doubled the error on 5,000 digits.
    varying = highest > lowest
    if np.count_nonzero(varying) < 2:
        return False
    low, high = lowest[varying], highest[varying]
    width = high.max() - low.min()
    near = high - low.min() >= width / 2
    return bool(low.max() - low.min() <= 0.01 * width and near.mean() >= 0.5)


def scaling_from(
    mean: np.ndarray, variance: np.ndarray, scaling: Scaling, *, shared: bool = False
) -> Standardise | None:
    """Make the scaling layer from mean and variance of each column, and whether they share bounds."""
    if scaling == "none":
        return None
    if scaling == "auto":
        scaling = "global" if shared else "columns"
    if scaling == "global":
        centre = float(mean.mean())
        spread = math.sqrt(float(np.mean(variance + (mean - centre) ** 2))) or 1.0
        return Standardise(np.full_like(mean, centre), np.full_like(mean, spread))
    # A column whose variance is as small as the rounding of its mean is constant, and keeps the scale 1
    noise = 1e-14 * mean**2
    return Standardise(mean, np.sqrt(np.where(variance > noise, variance, 1.0)))
