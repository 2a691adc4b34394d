r"""Fit a layer-wise filtered network to samples in memory; widths may be infinite."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from solvable.arrays import Array, as_on, is_tensor, namespace, random_stream, to_numpy
from solvable.errors import InvalidParameter, MemoryLimitExceeded
from solvable.fitting.ridge import ReadoutMoments, Regularisation, RidgeFit, kernel_ridge
from solvable.memory import available_bytes, gigabytes
from solvable.networks.blocks import Block, LabelCode
from solvable.networks.filters import FilterReport, FilterSettings
from solvable.networks.in_memory_filter import MOMENT_ROWS, LabelledFilter, rows_of
from solvable.networks.layers import (
    AsImages,
    Filter,
    Flatten,
    KernelChain,
    KernelFilter,
    KernelReadout,
    Lift,
    LinearReadout,
    Network,
    Pool,
    Residual,
    double,
)
from solvable.operators.activations import dual_kernel, kernel_diagonal
from solvable.operators.kernel_factor import KernelFactor, factorise_kernel
from solvable.operators.lift import patches


@dataclass(frozen=True)
class FitSettings:
    """Settings of a fit."""

    blocks: tuple[Block, ...]
    filters: tuple[FilterSettings | None, ...]  # filter of each block, or None
    final: FilterSettings | None = None  # filter after the last block
    regularisation: Regularisation = "leave-one-out"  # penalty of the readout
    seed: int = 0  # seed of lifts, permutations and solvers
    image_shape: tuple[int, int, int] | None = None  # image shape of each row, if convolutional
    readout: bool = True  # True to fit a readout
    null_replicates: int = 3  # number of draws of random labels for each null

    @property
    def is_finite(self) -> bool:
        """True if every lift has finite width."""
        return not any(block.is_infinite for block in self.blocks)


@dataclass(frozen=True)
class NetworkFit:
    """Fitted network and the reports of its filters."""

    network: Network
    filters: tuple[FilterReport, ...]
    readout: RidgeFit | None


def lift_seed(seed: int, position: int) -> int:
    """Seed of the lift of a block, independent of the other blocks."""
    return int(random_stream(seed, "lift of block", position).integers(2**62))


def lift_of(block: Block, inputs: int, square: float, seed: int, position: int) -> Lift:
    """Make the finite lift of a block from the number and the mean squared norm of its inputs."""
    assert block.width is not None
    bias = block.bias * math.sqrt(square)
    return Lift(
        inputs,
        int(block.width),
        block.activation,
        math.hypot(math.sqrt(square), bias) or 1.0,
        lift_seed(seed, position),
        block.patch or 0,
        bias,
    )


def residual_factors(
    skip: float | str, report: FilterReport, kept_square: float, input_square: float
) -> tuple[float, float]:
    """Factors of kept coordinates and of skipped inputs, from their mean squared norms."""
    share = report.missed if isinstance(skip, str) else skip
    kept, inputs = (square or 1.0 for square in (kept_square, input_square))
    return math.sqrt((1 - share) / kept), math.sqrt(share / inputs)


class _State:
    """Training samples after the layers fitted so far: explicit features, or a kernel."""

    def __init__(self, h: Array) -> None:
        self.h = h
        self.base = h  # samples at the inputs of the first lift after the last filter
        self.first = 0  # index of the first layer since the last filter
        self.chain: KernelChain | None = None
        self.kernel: Array | None = None

    @property
    def is_kernel(self) -> bool:
        return self.kernel is not None


def fit_in_memory(
    X: Array,
    labels: np.ndarray,
    code: LabelCode,
    settings: FitSettings,
) -> NetworkFit:
    """Fit all layers in order to standardised samples (n, d) and encoded labels (n,)."""
    # Samples, features, kernels and the ridge of a kernel stay on the device of X. The eigenproblems of
    # filters and of a readout of finite width are solved on the host: each one copies a matrix, and
    # with reduce="auto" also one block of vectors for each step of the nulls.
    fit = _Fit(labels, code, settings)
    state = _State(X)
    if settings.image_shape is not None:
        fit.append(state, AsImages(settings.image_shape))
    for position, (block, chosen) in enumerate(zip(settings.blocks, settings.filters, strict=True)):
        if chosen is not None:
            fit.filter(state, chosen, block.whitening, position, block.skip)
        if block.pooling > 1:
            fit.append(state, Pool(block.pooling))
        fit.lift(state, block, position)
    if settings.final is not None:
        fit.filter(state, settings.final, "none", len(settings.blocks))
    if state.h.ndim > 2:
        fit.append(state, Flatten())
    readout, ridge = fit.readout(state) if settings.readout else (None, None)
    return NetworkFit(Network(tuple(fit.layers), readout), tuple(fit.reports), ridge)


class _Fit:
    """Layers and filter reports so far; each step appends its layer and report and applies the layer."""

    def __init__(self, labels: np.ndarray, code: LabelCode, settings: FitSettings) -> None:
        self.labels = labels
        self.code = code
        self.settings = settings
        self.layers: list[Any] = []
        self.reports: list[FilterReport] = []
        self.filtering = LabelledFilter(labels, code, settings.seed, settings.null_replicates)

    def append(self, state: _State, layer: Any) -> None:
        self.layers.append(layer)
        state.h = layer.apply(state.h)

    def lift(self, state: _State, block: Block, position: int) -> None:
        if block.width is None:
            return
        if state.h.ndim > 2 and block.patch is None:
            self.append(state, Flatten())
        if block.is_infinite:
            _lift_kernel(state, block.activation, block.bias)
            return
        h = state.h
        n_inputs = h.shape[-1] * (block.patch or 1) ** 2
        square = mean_square(h, block.patch)
        if not is_tensor(h):
            _check_memory(8.0 * math.prod(h.shape[:-1]) * int(block.width), "explicit features")
        self.append(state, lift_of(block, n_inputs, square, self.settings.seed, position))

    def filter(
        self,
        state: _State,
        chosen: FilterSettings,
        whitening: str,
        position: int,
        skip: float | str = 0.0,
    ) -> None:
        rng = random_stream(self.settings.seed, "filter", position)
        if state.is_kernel:
            self._filter_kernel(state, chosen, whitening, rng)
        else:
            self._filter_explicit(state, chosen, whitening, rng)
        if skip:
            squares = mean_square(state.h, None), mean_square(state.base, None)
            inside = tuple(self.layers[state.first :])
            residual = Residual(inside, *residual_factors(skip, self.reports[-1], *squares))
            self.layers[state.first :] = [residual]
            state.h = residual.beside(state.h, state.base)
        state.base, state.first = state.h, len(self.layers)

    def _filter_explicit(
        self, state: _State, chosen: FilterSettings, whitening: str, rng: Any
    ) -> None:
        h = state.h
        rows = h.reshape(-1, h.shape[-1])
        labels = np.repeat(self.labels, len(rows) // len(h))
        directions, report = self.filtering.explicit(rows, labels, chosen, rng)
        if whitening == "none" and not chosen.centred:
            offset, factor = np.zeros(directions.shape[1]), np.ones(directions.shape[1])
        else:
            kept = double(rows) @ as_on(directions, double(rows))
            offset, factor = whitening_of(kept, whitening, centred=chosen.centred)
        self.reports.append(report)
        self.append(state, Filter(directions, offset, factor))

    def _filter_kernel(
        self, state: _State, chosen: FilterSettings, whitening: str, rng: Any
    ) -> None:
        assert state.kernel is not None
        assert state.chain is not None
        factor = _factor(to_numpy(state.kernel), counted=chosen.n_directions == "auto")
        R = factor.rows
        B, report = self.filtering.of_factor(
            R - R.mean(axis=0) if chosen.centred else R, self.labels, chosen, rng
        )
        kept = R @ B
        offset, scale = whitening_of(kept, whitening, centred=chosen.centred)
        self.reports.append(report)
        self.layers.append(
            KernelFilter(
                to_numpy(double(rows_of(state.h, factor.landmarks))),
                factor.dual(B),
                offset,
                scale,
                state.chain.activations,
                state.chain.squared_scales,
                state.chain.squared_biases,
            )
        )
        state.h = as_on((kept - offset) * scale, state.kernel)
        state.chain, state.kernel = None, None

    def readout(self, state: _State) -> tuple[Any, RidgeFit]:
        Y = self.code.outputs(self.labels)
        penalty = self.settings.regularisation
        if state.is_kernel:
            assert state.kernel is not None
            assert state.chain is not None
            ridge = kernel_ridge(state.kernel, Y, regularisation=penalty)
            base = to_numpy(double(state.h))
            chain = state.chain
            return KernelReadout(
                base,
                ridge.coefficients,
                ridge.intercept,
                chain.activations,
                chain.squared_scales,
                chain.squared_biases,
            ), ridge
        h = state.h
        if len(h) < h.shape[1]:
            h = double(h)
            ridge = kernel_ridge(h @ h.T, Y, regularisation=penalty)
            weights = to_numpy(h.T @ as_on(ridge.coefficients, h))
            return LinearReadout(weights, ridge.intercept), ridge
        sums = ReadoutMoments(h.shape[1], Y.shape[1])
        for start in range(0, len(h), MOMENT_ROWS):
            part = slice(start, start + MOMENT_ROWS)
            sums.add(h[part], Y[part])
        ridge = sums.solve(regularisation=penalty)
        return LinearReadout(ridge.coefficients, ridge.intercept), ridge


def _factor(kernel: np.ndarray, *, counted: bool) -> KernelFactor:
    """Features on the landmarks that a filter needs: the Nystrom approximation for more samples."""
    factor = factorise_kernel(kernel, max_rank=2000)
    rank = factor.rows.shape[1]
    if not counted or rank <= 500:
        return factor
    # Nulls cost rank². They use the same features as the operator of the labels, chosen without labels,
    # so the approximation can only lower the power: it omits 5 % of the variance outside the first 40
    # landmarks. It shifts the null by 1 to 2 %, as much as other draws of the labels do.
    variances = np.einsum("ij,ij->j", factor.rows, factor.rows)
    left = float(np.trace(kernel)) - np.cumsum(variances)
    enough = 1 + int(np.argmax(left <= 0.05 * left[39])) if left[-1] <= 0.05 * left[39] else rank
    return factor.leading(min(max(enough, 500), 1000))


def _lift_kernel(state: _State, activation: str, bias: float) -> None:
    n = len(state.h)
    if not is_tensor(state.h):
        _check_memory(6 * 8.0 * n * n, f"kernels of {n} samples")
    if state.kernel is None:
        h = double(state.h)
        kernel = h @ h.T
        chain = KernelChain((), (), ())
    else:
        assert state.chain is not None
        kernel, chain = state.kernel, state.chain
    xp = namespace(kernel)
    diagonal = xp.linalg.diagonal(kernel)
    added = bias**2 * float(xp.mean(diagonal))
    square = float(xp.mean(diagonal)) + added or 1.0
    scaled = (diagonal + added) / square
    kernel_block = 128  # rows of a kernel that are lifted at a time on the host
    # K' = kappa((K + b²) / c²), c² the mean diagonal; on the host in parts that fit in the cache
    rows = n if is_tensor(kernel) else kernel_block
    lifted = xp.empty_like(kernel)
    for start in range(0, n, rows):
        part = slice(start, start + rows)
        lifted[part] = dual_kernel(
            activation, (kernel[part] + added) / square, scaled[part], scaled
        )
    # Near angle 0 rounding loses half of the digits: compute the diagonal separately.
    lifted.reshape(-1)[:: n + 1] = kernel_diagonal(activation, scaled)
    state.kernel = lifted
    state.chain = KernelChain(
        (*chain.activations, activation),
        (*chain.squared_scales, square),
        (*chain.squared_biases, added),
    )


def mean_square(h: Array, patch: int | None) -> float:
    """Mean squared norm of the inputs of a lift (of patches in convolutional blocks)."""
    xp = namespace(h)
    if patch is None:
        return float(xp.sum(h * h, dtype=xp.float64)) / len(h)
    total, rows = 0.0, 0
    for start in range(0, len(h), 256):
        around = patches(h[start : start + 256], patch)
        total += xp.sum(around * around, dtype=xp.float64)
        rows += math.prod(around.shape[:-1])
    return float(total) / rows


def whitening_of(
    kept: Array, whitening: str, *, centred: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Offset and factor of the whitening of kept coordinates (n, k)."""
    kept = double(kept)
    xp = namespace(kept)
    mean, square = xp.mean(kept, axis=0), xp.mean(kept * kept, axis=0)
    return whitening_from(to_numpy(mean), to_numpy(square), whitening, centred=centred)


def whitening_from(
    mean: np.ndarray, square: np.ndarray, whitening: str, *, centred: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Offset and factor of the whitening from the mean and mean square of each coordinate."""
    offset, ones = (mean if centred else np.zeros_like(mean)), np.ones_like(mean)
    if whitening == "none":
        return offset, ones
    power = square if whitening == "rms" and not centred else square - mean**2
    factor = np.divide(1.0, np.sqrt(np.maximum(power, 0)), out=ones, where=power > 1e-30)
    return (mean if whitening == "centred" else offset), factor


def _check_memory(needed: float, what: str) -> None:
    free = available_bytes()
    if needed > free:
        raise MemoryLimitExceeded(
            f"{what} take {gigabytes(needed)}; {gigabytes(free)} are free. Take a smaller width, a "
            "finite one."
        )


def check_images(settings: FitSettings, n_columns: int) -> None:
    """Raise unless convolutional blocks come with an image_shape that fits the columns."""
    wants = any(block.patch is not None or block.pooling > 1 for block in settings.blocks)
    if settings.image_shape is not None and any(
        block.skip or block.residual_labels for block in settings.blocks
    ):
        raise InvalidParameter(
            "image_shape is given and a block has skip or residual_labels; allowed: one of the two."
        )
    if settings.image_shape is None:
        if wants:
            raise InvalidParameter(
                "image_shape is None and a block is convolutional; give (height, width, channels)."
            )
        return
    if math.prod(settings.image_shape) != n_columns:
        raise InvalidParameter(
            f"image_shape is {settings.image_shape}, which is {math.prod(settings.image_shape)} "
            f"pixels; the samples have {n_columns} columns."
        )
