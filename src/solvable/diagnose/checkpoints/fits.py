"""Fits of all matrices of one checkpoint, in full or quick."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from solvable.data.weights.stored import StoredArray, Weights
from solvable.diagnose.adapters import joined_adapters, multiplied
from solvable.diagnose.attention.query_key_arrays import heads_of
from solvable.diagnose.checkpoints.changes import MOST_FEATURES, Signals
from solvable.diagnose.diagnosis import NOT_FITTED, MatrixDiagnosis
from solvable.diagnose.matrices_of_file import cost_of, diagnose_file
from solvable.diagnose.quick import QuickRow, quick_rows
from solvable.diagnose.roles import split_arrays
from solvable.diagnose.tables import features_text
from solvable.plots.numbers import MISSING

# Phases of quick rows, which are not tested.
QUICK_PHASES = ("random-like", "bulk+spikes", "no bulk")


@dataclass(frozen=True)
class Fit:
    """Numbers of one matrix at one checkpoint."""

    matrix: str
    shape: tuple[int, ...]
    phase: str
    features: int | None = None  # None if no bulk of noise separates them
    strongest: float | None = None  # strength of the strongest feature
    exponent: float | None = None  # of the tail of squared singular values
    plausible: bool | None = None  # False if the power law is refuted; None without a test
    noise: float | None = None  # scale of the noise
    norm: float | None = None
    largest: float | None = None
    stable_rank: float | None = None
    rest: float | None = None  # norm of the values that are no features
    overlaps: tuple[float, ...] = ()  # squared overlap of each feature with its signal
    reason: str = ""

    @property
    def signals(self) -> Signals:
        """Features whose directions are compared between checkpoints."""
        return Signals(self.features or 0, self.noise, self.overlaps)

    @property
    def fitted(self) -> bool:
        """True if the matrix has a phase."""
        return self.phase != NOT_FITTED


def matrices_in(weights: Weights, heads: int | None) -> dict[str, StoredArray]:
    """Return the matrices of a checkpoint by name: fused projections split, adapters multiplied."""
    arrays = split_arrays(joined_adapters(weights.arrays), heads_of(weights, heads))
    return {stored.name: multiplied(stored) for stored in arrays if stored.is_matrix}


def cost_of_fits(weights: Weights, heads: int | None) -> float:
    """Return the approximate CPU seconds of the full fits of a checkpoint."""
    return sum(cost_of(stored.shape) for stored in matrices_in(weights, heads).values())


def fits_of(
    weights: Weights, *, heads: int | None, quick: bool, seed: int, workers: int
) -> Iterator[Fit]:
    """Yield the fit of each matrix of a checkpoint."""
    if quick:
        for row in quick_rows(weights, heads=heads, workers=workers, seed=seed):
            yield _of_quick(row)
        return
    for full in diagnose_file(weights, heads=heads, workers=workers, seed=seed):
        if len(full.shape) > 1 or full.dtype == "unknown":
            yield _of_full(full)


def _of_full(row: MatrixDiagnosis) -> Fit:
    features = row.features[:MOST_FEATURES]
    counted = row.fitted and features_text(row) != MISSING
    rest = None
    if row.norm is not None and counted:
        observed = np.array([feature.observed for feature in row.features])
        rest = float(np.sqrt(max(row.norm**2 - (observed**2).sum(), 0.0)))
    return Fit(
        row.name,
        row.shape,
        row.phase,
        len(row.features) if counted else None,
        row.features[0].strength.value if row.features else None,
        None if row.tail is None else row.tail.exponent,
        None if row.tail is None else row.tail.plausible,
        None if row.noise is None else row.noise.value,
        row.norm,
        row.largest,
        row.stable_rank,
        rest,
        tuple(feature.squared_overlap for feature in features),
        "" if row.fitted else row.reason,
    )


def _of_quick(row: QuickRow) -> Fit:
    phase = NOT_FITTED
    noise = None
    if row.edge is not None:
        phase = QUICK_PHASES[1 if row.beyond else 0]
        p, q = _sides(row.shape)
        # edge of the bulk: noise times 1 + sqrt(p/q)   (spectra 2)
        noise = row.edge / (1 + (p / q) ** 0.5)
    elif row.exponent is not None:
        phase = QUICK_PHASES[2]
    return Fit(
        row.name,
        row.shape,
        phase,
        row.beyond,
        None,
        row.exponent,
        None,
        noise,
        row.norm,
        row.largest,
        row.stable_rank,
        reason=row.reason,
    )


def _sides(shape: tuple[int, ...]) -> tuple[int, int]:
    rows = shape[0]
    columns = int(np.prod(shape[1:]))
    return min(rows, columns), max(rows, columns)
