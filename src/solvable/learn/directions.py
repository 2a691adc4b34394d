"""Directions that a fitted model's filters found, and pictures of these directions for images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from solvable.learn.attribution import Attribution, first_coordinates, matched
from solvable.learn.held_out_signal import Unseen, lost_without, signal_on_unseen
from solvable.learn.results import ColumnShare, Direction, LayerFound, SignalOfClass
from solvable.networks.filters import FilterReport
from solvable.networks.significance import FIRST_RATIO, SIGNIFICANT_RATIO


@dataclass(frozen=True)
class Made:
    """Shares of columns in the first filter's directions, and the directions' signal on unseen rows."""

    whole: Attribution  # attribution by the model fitted to all rows
    folds: tuple[Unseen, ...]  # signal measured in each fold; empty if a fold has no directions
    # Coordinates of each fold's test rows along the directions of the model fitted to all rows.
    coordinates: tuple[np.ndarray, ...]

    def totals(self, tests: int) -> tuple[ColumnShare, ...]:
        """Return the shares of the columns in all directions together."""
        last = np.array([fold.tested.shape[1] for fold in self.folds], dtype=np.int64)
        return self._columns(self.whole.total, last, tests)

    @cached_property
    def _matched(self) -> tuple[np.ndarray, np.ndarray]:
        return matched([fold.tested for fold in self.folds], self.coordinates)

    def of(self, number: int, tests: int) -> dict[str, Any]:
        """Return the attribution of direction `number`; significance is corrected for `tests` tests."""
        place = number - 1
        if place >= len(self.whole.shares):
            return {}
        straight = float(self.whole.straight[place])
        known: dict[str, Any] = {"straight": None if np.isnan(straight) else straight}
        if not self.folds:
            none = np.empty(0, dtype=np.int64)
            return known | {"columns": self._columns(self.whole.shares[place], none, tests)}
        match, again = self._matched
        unseen = signal_on_unseen(self.folds, match[:, place])
        return known | {
            "columns": self._columns(self.whole.shares[place], match[:, place], tests),
            "again": float(np.median(again[:, place])),
            "unseen": unseen.value,
            "unseen_error": unseen.error,
            "confirmed": unseen.is_above_zero(tests),
        }

    def _columns(
        self, shares: np.ndarray, places: np.ndarray, tests: int
    ) -> tuple[ColumnShare, ...]:
        """Sort columns by share; add the signal lost by shuffling each column, if folds have a signal."""
        columns = [
            ColumnShare(self.whole.columns[place], float(shares[place]))
            for place in np.argsort(-shares, kind="stable")
        ]
        signal = signal_on_unseen(self.folds, places) if len(places) else None
        if signal is None or not signal.is_above_zero(tests):
            return tuple(columns)
        shares_and_losses = []
        for part in columns:
            lost = lost_without(self.folds, places, part.column)
            value, error = lost.value / signal.value, lost.error / signal.value
            named = lost.is_above_zero(tests * len(columns))
            shares_and_losses.append(replace(part, lost=value, lost_error=error, named=named))
        return tuple(shares_and_losses)


def made_of(
    model: Any,
    whole: Attribution | None,
    in_folds: Sequence[Unseen | None],
    tested: Sequence[np.ndarray],
) -> Made | None:
    """Combine the attribution by the model of all rows with the signal on the folds' test rows."""
    if whole is None:
        return None
    folds = [one for one in in_folds if one is not None]
    if len(folds) < len(in_folds):
        return Made(whole, (), ())
    count = len(whole.shares)
    coordinates = tuple(first_coordinates(model, X)[:, :count] for X in tested)
    return Made(whole, tuple(folds), coordinates)


def layers_found(
    model: Any,
    in_folds: Sequence[tuple[int, ...]],
    labels: Sequence[str],
    made: Made | None = None,
    *,
    confirmed: bool = False,
) -> tuple[LayerFound, ...]:
    """Return the directions that each filter found in all rows; `labels` are classes or the target."""
    layers: list[LayerFound] = []
    for number, report in enumerate(model.filters_):
        # Directions after a filter without signal are not counted, because that filter selected the
        # inputs of the next filter for their correlation with the labels.
        below = [counts[number] if all(counts[:number]) else 0 for counts in in_folds]
        # If the learned features beat the constant on unseen rows, directions above the threshold
        # count even if the permutation test of the strongest is not significant.
        significant = report.n_kept_above if confirmed else report.n_told
        real = bool(significant) and all(layer.directions for layer in layers)
        shown = _strongest(report, real, None if number else made)
        layers.append(
            LayerFound(
                number=number + 1,
                directions=significant * real,
                directions_in_folds=tuple(below),
                kept=len(report.strengths),
                threshold=SIGNIFICANT_RATIO,
                strongest=shown,
                signals=_signals(report, labels, significant * real),
                columns=made.totals(len(shown) + 1) if made and real and not number else (),
            )
        )
    return tuple(layers)


def _ratios(report: FilterReport) -> dict[int, float]:
    """Return the strength divided by its null for each tested direction, by rank from 1."""
    linear = len(report.linear_ratios)
    tested = dict(enumerate(report.linear_ratios.tolist(), start=1))
    # With several classes, directions were tested class by class and not in the common ranking.
    if len(report.null_ratios) == 1:
        pairs = zip(report.null_counts.tolist(), report.null_ratios[0].tolist(), strict=True)
        tested |= {linear + count + 1: ratio for count, ratio in pairs if np.isfinite(ratio)}
    return tested


def _strongest(report: FilterReport, real: bool, made: Made | None) -> tuple[Direction, ...]:
    tested, linear = _ratios(report), len(report.linear_ratios)
    ranks = (1, 2, 3, 4, 6, 8, 11, 15, 21, 29, 41, 57, 81, 113, 161, 225, 321, 449, 641)
    known = sorted(tested) if len(report.null_ratios) == 1 else sorted({*tested, *ranks})
    numbers = [one for one in known if one <= len(report.strengths)]
    unknown = np.full(linear, np.nan)
    dimensions = np.concatenate([unknown, report.residual_dimensions])
    emergence = np.concatenate([unknown, report.emergence_samples])
    return tuple(
        Direction(
            number,
            float(report.strengths[number - 1]),
            tested.get(number),
            emergence_rows(report.n_samples, tested.get(number)) if real else None,
            float(dimensions[number - 1]),
            float(emergence[number - 1]),
            linear=number <= linear,
            # There is one test per listed direction, and one test of all directions together.
            **(made.of(number, len(numbers) + 1) if made is not None and real else {}),
        )
        for number in numbers
    )


def _signals(report: FilterReport, labels: Sequence[str], whole: int) -> tuple[SignalOfClass, ...]:
    if len(labels) == 1:
        found = [(_ratios(report), whole)]
    else:
        found = [_of_class(report, place, whole) for place in range(len(report.null_ratios))]
    signals = []
    for label, (tested, number) in zip(labels, found, strict=True):
        ranks, ratios = tuple(tested), tuple(tested.values())
        signal = SignalOfClass(label, ranks, ratios, number, None)
        rows = emergence_rows(report.n_samples, signal.strongest) if whole else None
        signals.append(replace(signal, emergence_rows=rows))
    return tuple(signals)


def _of_class(report: FilterReport, place: int, whole: int) -> tuple[dict[int, float], int]:
    """Return the ratios of a class's directions by rank, and the number of directions with signal."""
    of_signal = report.null_ratios[place]
    known = np.isfinite(of_signal)
    ranks, ratios = report.null_counts[known] + 1, of_signal[known]
    number = above_null(ranks, ratios, report.first_ratio)
    # The first direction of a class is the mean of the features weighted by the class labels.
    means = report.mean_ratios[place : place + 1]
    number += int(np.count_nonzero(means > SIGNIFICANT_RATIO))
    ranks, ratios = ranks + len(means), np.concatenate([means, ratios])
    ranks = np.concatenate([np.ones(len(means), dtype=int), ranks])
    return dict(zip(ranks.tolist(), ratios.tolist(), strict=True)), min(whole, 1) * number


def emergence_rows(rows: int, ratio: float | None) -> float | None:
    """Return the number of rows at which strength equals the null; None if the ratio is below 1."""
    # Direction k + 1 emerges at n_e = n / r² rows with r = |lambda_(k+1)| / null: the strength of a
    # direction with signal hardly depends on n, and its null falls as n^(-1/2). On digits (even against
    # odd), the ratios at n = 1797 predict 10, 15 and 37 directions at n = 112, 225 and 450; the counts
    # measured at these n are 9 to 13, 21 to 25 and 36 to 79.
    return None if ratio is None or not ratio >= 1 else rows / ratio**2


def above_null(ranks: np.ndarray, ratios: np.ndarray, first_ratio: float = FIRST_RATIO) -> int:
    """Return the number of directions above the threshold, interpolated between the tested ranks."""
    if len(ratios) and ranks[0] == 1 and ratios[0] <= first_ratio:
        return 0
    below = np.flatnonzero(ratios <= SIGNIFICANT_RATIO)
    if not below.size:
        return int(ranks[-1]) if len(ranks) else 0
    last = int(below[0])
    if last == 0:
        return 0
    share = (ratios[last - 1] - SIGNIFICANT_RATIO) / (ratios[last - 1] - ratios[last])
    return int(ranks[last - 1] + np.floor(share * (ranks[last] - ranks[last - 1])))


def pictures_of(
    model: Any, X: np.ndarray, image_shape: tuple[int, ...] | None
) -> np.ndarray | None:
    """Return each pixel's covariance with each strongest direction, shape (k, height, width)."""
    if image_shape is None:
        return None
    # A direction of an infinitely wide layer has no weights on pixels. Shown instead is the
    # covariance of pixel i with direction k,
    # p_ki = (1/n) sum_mu (f_k(x_mu) - mean f_k) / std(f_k) (x_mu,i - mean x_i)
    features = first_coordinates(model, X)[:, :12]
    spread = features.std(axis=0)
    standardised = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    centred = X - X.mean(axis=0, dtype=np.float64)
    pictures = (standardised.T @ centred / len(X)).reshape(-1, *image_shape)
    # Pictures of colour images are averaged over the channels.
    return np.asarray(pictures.mean(axis=3) if pictures.ndim == 4 else pictures)
