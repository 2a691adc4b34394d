r"""Fit a layer-wise filtered network in several passes over samples that are read in chunks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from solvable.arrays import Array, random_stream
from solvable.errors import InvalidData, InvalidParameter
from solvable.fitting.ridge import ReadoutMoments, RidgeFit
from solvable.networks.base import Scaling, scaling_from, share_bounds
from solvable.networks.blocks import Block, LabelCode
from solvable.networks.filters import FilterReport, FilterSettings, fit_filter
from solvable.networks.in_memory_fit import (
    FitSettings,
    NetworkFit,
    lift_of,
    mean_square,
    residual_factors,
    whitening_from,
)
from solvable.networks.layers import (
    AsImages,
    Filter,
    Flatten,
    Lift,
    LinearReadout,
    Network,
    Pool,
    Residual,
)
from solvable.networks.significance import relabelled
from solvable.networks.stream_sums import FilterSums, ScaleSums, Survey
from solvable.operators.label_moments import LabelMoments
from solvable.operators.signals import MomentSignals

Stage: TypeAlias = Literal["survey", "filter", "scale", "readout", "done"]
"""Purpose of the current pass."""


@dataclass(frozen=True)
class LabelKind:
    """Kind of the labels of a stream."""

    real: bool  # True for real numbers, False for classes
    centre: bool = False  # True if two-valued labels are centred
    bounded: bool = False  # True if filters see the hyperbolic tangent of real labels


class PassByPass:
    """Partly fitted network: its layers so far, and the purpose of the next pass."""

    # There is one pass over the columns, one per filter, one for the readout, and one per lift whose
    # scale does not follow from the last pass (consecutive lifts, image patches). Each pass maps the
    # samples through the layers fitted so far, so no array of the size of the samples is stored.

    def __init__(
        self, settings: FitSettings, kind: LabelKind, scaling: Scaling, n_columns: int
    ) -> None:
        if not settings.is_finite:
            raise InvalidParameter(
                "a block has width infinity, whose kernel needs all samples in memory; allowed in a "
                "stream: finite widths. Set width to a number in every block."
            )
        if any(chosen is not None and chosen.residual for chosen in settings.filters):
            raise InvalidParameter(
                "a block has residual_labels=True, which is not available in a stream; allowed: "
                "residual_labels=False."
            )
        self.settings = settings
        self.kind = kind
        self.scaling: Scaling = scaling
        self.n_columns = n_columns
        self.layers: list[Any] = []
        self.reports: list[FilterReport] = []
        self.code: LabelCode | None = None
        self.classes: np.ndarray = np.empty(0)
        self.rows = 0
        self.stage: Stage = "survey"
        self.block = 0
        self.square: float | None = None
        self.base = 0  # index of the first layer since the last filter; a skip uses its inputs
        self.base_square = 0.0  # mean squared norm of the inputs of that layer
        self.shape: tuple[int, ...] = (n_columns,)
        self.readout: LinearReadout | None = None
        self.ridge: RidgeFit | None = None

    @property
    def is_done(self) -> bool:
        """True if the fit needs no further pass."""
        return self.stage == "done"

    @property
    def result(self) -> NetworkFit:
        """Return the fitted network."""
        if self.stage != "done":
            raise InvalidData(f"the fit is not finished: the next pass is for the {self.stage}.")
        return NetworkFit(
            Network(tuple(self.layers), self.readout), tuple(self.reports), self.ridge
        )

    def sums(self) -> Any:
        """Empty sums of the current pass."""
        if self.stage == "survey":
            return Survey(self.n_columns)
        if self.stage == "scale":
            return ScaleSums()
        assert self.code is not None
        if self.stage == "readout":
            return ReadoutMoments(math.prod(self.shape), self.code.n_outputs)
        chosen = self._filter()

        def empty() -> LabelMoments:
            assert self.code is not None
            return LabelMoments(self.shape[-1], self.code.n_groups, classes=not self.code.is_real)

        count = self.settings.null_replicates if chosen.n_directions == "auto" else 0
        return FilterSums(empty(), [empty() for _ in range(count)])

    def sums_from(self, arrays: Mapping[str, np.ndarray]) -> Any:
        """Sums of the current pass from stored arrays."""
        return type(self.sums()).from_arrays(arrays)

    def add(
        self,
        sums: Any,
        X: Array,
        y: np.ndarray,
        first_row: int,
        classes: Sequence[Any] | None = None,
    ) -> None:
        """Add a chunk of samples to the sums of the current pass."""
        if X.ndim != 2 or X.shape[1] != self.n_columns or len(X) != len(y):
            raise InvalidData(
                f"a chunk has samples of shape {X.shape} and labels of shape {np.shape(y)}; "
                f"allowed: (m, {self.n_columns}) and (m,)."
            )
        if not len(X):
            return
        if self.stage == "survey":
            if self.kind.real and not np.isfinite(np.asarray(y, dtype=np.float64)).all():
                raise InvalidData("some labels are NaN or infinite; allowed: finite numbers.")
            sums.add(X, y, classes=classes)
            return
        h = X
        for layer in self.layers:
            h = layer.apply(h)
        if self.stage == "scale":
            patch = self.settings.blocks[self.block].patch
            inputs = len(h) if patch is None else h[..., 0].size
            sums.add(mean_square(h, patch) * inputs, inputs)
            return
        assert self.code is not None
        labels = self.code.encode(self._numbered(y))
        if self.stage == "readout":
            sums.add(h.reshape(len(h), -1), self.code.outputs(labels))
            return
        rows = h.reshape(-1, h.shape[-1])
        locations = len(rows) // len(h)
        sums.moments.add(rows, np.repeat(self.code.mapped(labels), locations))
        for replicate, null in enumerate(sums.nulls):
            drawn = relabelled(
                self.code, labels, first_row, seed=self.settings.seed, replicate=replicate
            )
            null.add(rows, np.repeat(self.code.mapped(drawn), locations))

    def _numbered(self, y: np.ndarray) -> np.ndarray:
        if self.kind.real:
            return np.asarray(y, dtype=np.float64)
        codes = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        unseen = np.asarray(self.classes[codes] != y)
        if unseen.any():
            raise InvalidData(
                f"label {np.asarray(y)[unseen][0]} did not occur in the first pass; allowed: the same "
                "samples in every pass."
            )
        return codes

    def finish(self, sums: Any) -> None:
        """End the current pass: fit its layer, and return the purpose of the next pass."""
        if not sums.rows if self.stage != "filter" else not sums.moments.rows:
            raise InvalidData("the pass held no samples; at least two rows are needed.")
        if self.stage == "survey":
            self._finish_survey(sums)
            self._begin_block()
        elif self.stage == "filter":
            self._finish_filter(sums)
            self._before_lift()
        elif self.stage == "scale":
            self.square = sums.total / sums.rows
            self._append_lift()
        else:
            self.ridge = sums.solve(regularisation=self.settings.regularisation)
            self.readout = LinearReadout(self.ridge.coefficients, self.ridge.intercept)
            self.stage = "done"

    def _finish_survey(self, survey: Survey) -> None:
        self.rows = survey.rows
        if survey.rows < 2:
            raise InvalidData(f"the stream has {survey.rows} row; allowed: at least 2.")
        if self.kind.real:
            deviation = math.sqrt(float(survey.label_deviation[0]) / survey.rows)
            none, centre = np.empty(0, dtype=int), float(survey.label_mean[0])
            self.code = LabelCode(none, centre, deviation, bounded=self.kind.bounded)
        else:
            self.classes = survey.classes
            if np.any(survey.counts == 0):
                absent = survey.classes[survey.counts == 0]
                raise InvalidData(f"class {absent[0]} has no sample; allowed: at least one.")
            self.code = LabelCode(survey.counts, centre=self.kind.centre)
        shared = share_bounds(survey.lowest, survey.highest)
        first = scaling_from(survey.mean, survey.variance, self.scaling, shared=shared)
        mean, scale = np.zeros(self.n_columns), np.ones(self.n_columns)
        if first is not None:
            self.layers.append(first)
            mean, scale = first.mean, first.scale
        square = survey.variance + (survey.mean - mean) ** 2
        self.square = float(np.sum(square / scale**2))
        self.base, self.base_square = len(self.layers), self.square
        if self.settings.image_shape is not None:
            self.layers.append(AsImages(self.settings.image_shape))
            self.shape = self.settings.image_shape

    def _filter(self) -> FilterSettings:
        last = self.block == len(self.settings.blocks)
        chosen = self.settings.final if last else self.settings.filters[self.block]
        assert chosen is not None
        return chosen

    def _begin_block(self) -> None:
        """Set the purpose of the next pass, at the start of a block or after the last block."""
        if self.block == len(self.settings.blocks):
            if self.settings.final is not None:
                self.stage = "filter"
            else:
                self._begin_readout()
        elif self.settings.filters[self.block] is not None:
            self.stage = "filter"
        else:
            self._before_lift()

    def _begin_readout(self) -> None:
        if len(self.shape) > 1:
            self._flatten()
        self.stage = "readout" if self.settings.readout else "done"

    def _flatten(self) -> None:
        self.layers.append(Flatten())
        self.shape = (math.prod(self.shape),)

    def _finish_filter(self, sums: FilterSums) -> None:
        assert self.code is not None
        code = self.code
        chosen, coefficients = self._filter(), code.coefficients
        seen, *nulls = (
            MomentSignals(moments, coefficients, centred=chosen.centred)
            for moments in (sums.moments, *sums.nulls)
        )
        directions, report = fit_filter(
            seen,
            chosen,
            n_samples=sums.moments.rows,
            label_power=code.power,
            nulls=lambda: nulls,
            rng=random_stream(self.settings.seed, "filter", self.block),
        )
        mean = directions.T @ MomentSignals(sums.moments, coefficients).mean()
        square = seen.variances(directions) + mean**2 * chosen.centred
        last = self.block == len(self.settings.blocks)
        whitening = "none" if last else self.settings.blocks[self.block].whitening
        offset, factor = whitening_from(mean, square, whitening, centred=chosen.centred)
        self.layers.append(Filter(directions, offset, factor))
        self.reports.append(report)
        # Mean squared norm of the kept coordinates, E|(V^T z - offset) factor|²: scale of the next lift
        self.square = float(np.sum(factor**2 * (square - 2 * offset * mean + offset**2)))
        self.shape = (*self.shape[:-1], directions.shape[1])
        skip: float | str = 0.0 if last else self.settings.blocks[self.block].skip
        if skip:
            inside = tuple(self.layers[self.base :])
            factors = residual_factors(skip, report, self.square, self.base_square)
            self.layers[self.base :] = [Residual(inside, *factors)]
            lowest = inside[0] if isinstance(inside[0], Lift) else None
            inputs = lowest.n_inputs if lowest else len(inside[0].directions)
            self.shape = (self.shape[0] + inputs,)
            self.square = factors[0] ** 2 * self.square + factors[1] ** 2 * self.base_square
        self.base, self.base_square = len(self.layers), self.square

    def _before_lift(self) -> None:
        """Continue after the filter of a block, or without a filter."""
        if self.block == len(self.settings.blocks):
            self._begin_readout()
            return
        block = self.settings.blocks[self.block]
        if block.pooling > 1:
            pool = Pool(block.pooling)
            self.layers.append(pool)
            self.shape = pool.apply(np.zeros((1, *self.shape))).shape[1:]
            self.square = None
        if block.width is None:
            self._next_block()
            return
        if block.patch is None and len(self.shape) > 1:
            if self.square is not None and self.reports and self.settings.filters[self.block]:
                # Turn the mean over image locations into a sum over locations.
                self.square *= math.prod(self.shape[:-1])
            self._flatten()
        if self.square is None or block.patch is not None:
            self.stage = "scale"
        else:
            self._append_lift()

    def _append_lift(self) -> None:
        block: Block = self.settings.blocks[self.block]
        assert self.square is not None
        assert block.width is not None
        inputs = self.shape[-1] * (block.patch or 1) ** 2
        self.layers.append(lift_of(block, inputs, self.square, self.settings.seed, self.block))
        self.shape = (*self.shape[:-1], int(block.width))
        self.square = None
        self._next_block()

    def _next_block(self) -> None:
        self.block += 1
        self._begin_block()
