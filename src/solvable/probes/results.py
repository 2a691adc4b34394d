"""Result of a probe: learned shares by learner, size and feature, and the rows at one half."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.frame.points import Point
from solvable.plots.displayed import Shown
from solvable.probes.references import (
    BAYES,
    KERNEL,
    SPECTRAL,
    half_samples,
    reference_shares,
)
from solvable.probes.system import feature_names
from solvable.study.results import StudyResult

FEWEST_RESAMPLED = 4
"""Replicates from which on the interval is a bootstrap's; below it is the range of the replicates."""


@dataclass(frozen=True)
class LearnerCurve:
    """Learned shares of one learner: mean over replicates, at ascending sizes."""

    learner: str
    sizes: np.ndarray  # numbers of rows, or of training steps, shape (m,)
    replicates: tuple[np.ndarray, ...]  # one array (replicates, p) for each size
    within: np.ndarray  # mean standard error from the finite number of fresh rows, shape (m, p)
    others: Mapping[str, np.ndarray]  # mean of further metrics, shape (m,)
    rows: int = 0  # number of training rows if the sizes are steps, else 0

    @property
    def unit(self) -> str:
        """Unit of the sizes."""
        return "steps" if self.rows else "rows"

    @cached_property
    def mean(self) -> np.ndarray:
        """Mean shares, shape (m, p)."""
        return np.array([np.mean(rows, axis=0) for rows in self.replicates])

    @cached_property
    def error(self) -> np.ndarray:
        """Standard error over replicates, or from the fresh rows where there is one replicate."""
        found = self.within.copy()
        for row, values in zip(found, self.replicates, strict=True):
            if len(values) > 1:
                row[:] = values.std(axis=0, ddof=1) / np.sqrt(len(values))
        return found

    def halves(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows at one half of each feature, with lower and upper end of their interval."""
        p = self.mean.shape[1]
        centre = np.array([half_samples(self.sizes, monotone(self.mean[:, k])) for k in range(p)])
        count = min(len(rows) for rows in self.replicates)
        rng = random_stream(0, "half samples")
        draws = []
        if count >= FEWEST_RESAMPLED:
            for _ in range(400):
                picked = [rows[rng.integers(0, len(rows), len(rows))] for rows in self.replicates]
                draws.append(np.array([rows.mean(0) for rows in picked]))
        else:
            draws = [np.array([rows[i] for rows in self.replicates]) for i in range(count)]
        found = np.array(
            [[half_samples(self.sizes, monotone(draw[:, k])) for k in range(p)] for draw in draws]
        )
        if count >= FEWEST_RESAMPLED:
            ends = np.quantile(found, [0.05, 0.95], axis=0, method="nearest")
            return centre, ends[0], ends[1]
        return centre, found.min(0), found.max(0)


def monotone(values: np.ndarray) -> np.ndarray:
    """Return the closest values that do not fall (isotonic regression)."""
    from sklearn.isotonic import isotonic_regression

    return np.asarray(isotonic_regression(values))


def curves_of_points(points: Sequence[Point]) -> list[LearnerCurve]:
    """Gather the points of a probe by learner."""
    learners = dict.fromkeys(str(point.parameters["learner"]) for point in points)
    found = []
    for learner in learners:
        own = [p for p in points if p.parameters["learner"] == learner and p.metrics]
        own.sort(key=lambda point: int(point.parameters["samples"]))
        if not own:
            continue
        further = [
            name for name, value in own[0].metrics[0].items()
            if name not in ("learned_share", "standard_error", "energy", "share_in_time")
            and not isinstance(value, list | str)
        ]  # fmt: skip
        found.append(
            LearnerCurve(
                learner.removeprefix("given:"),
                np.array([float(point.parameters["samples"]) for point in own]),
                tuple(point.values("learned_share") for point in own),
                np.array([point.mean("standard_error") for point in own]),
                {name: np.array([float(p.mean(name)) for p in own]) for name in further},
            )
        )
    return found


def _steps(point: Point) -> list[int]:
    """Return the steps of a point; points of runs that lack the parameter have none."""
    return list(json.loads(str(point.parameters.get("steps", "[]"))))


def curves_in_time(points: Sequence[Point]) -> list[LearnerCurve]:
    """Gather shares against training steps, one curve for each observed learner and number of rows."""
    found = []
    for point in points:
        steps = np.array(_steps(point), dtype=float)
        if not steps.size or not point.metrics:
            continue
        shares = point.values("share_in_time").reshape(len(point.metrics), steps.size, -1)
        reached = np.isfinite(shares).all(axis=(0, 2))
        if reached.any():
            replicates = tuple(shares[:, place] for place in np.flatnonzero(reached))
            within = np.full(shares[0, reached].shape, np.nan)
            learner = str(point.parameters["learner"]).removeprefix("given:")
            rows = int(point.parameters["samples"])
            found.append(LearnerCurve(learner, steps[reached], replicates, within, {}, rows))
    return sorted(found, key=lambda curve: (curve.learner, curve.rows))


@dataclass(frozen=True, repr=False)
class ProbeResult(Shown, view="solvable.probes.view"):
    """Learned shares of hidden features by learner and number of rows; made by :func:`solvable.probe`.

    Parameters
    ----------
    study : StudyResult
        Records of all fits.
    target : str
        Name of the target.
    settings : str
        Its parameters, as a JSON object.

    Notes
    -----
    Docs: docs/probe.md. The shares are those of :class:`~solvable.probes.shares.Shares`.
    """

    study: StudyResult
    target: str
    settings: str

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the features."""
        return feature_names(self.target, self.settings)

    @cached_property
    def curves(self) -> list[LearnerCurve]:
        """One curve per learner."""
        return curves_of_points(self.study.points)

    @cached_property
    def in_time(self) -> list[LearnerCurve]:
        """Shares against training steps: a curve for each observed learner and number of rows."""
        return curves_in_time(self.study.points)

    @property
    def steps(self) -> list[int]:
        """Training steps at which shares were to be measured."""
        return _steps(self.study.points[0])

    @cached_property
    def references(self) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Sizes and predicted shares of each reference with a theory."""
        sizes = np.concatenate([curve.sizes for curve in self.curves])
        return references_of(self.target, self.settings, self.names, sizes)

    def half_of(self, reference: str) -> np.ndarray:
        """Rows at one half of each feature for a reference."""
        sizes, shares = self.references[reference]
        return np.array([half_samples(sizes, column) for column in shares.T])

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Fits that raised: learner, number of rows, replicate and error."""
        return [
            {
                "learner": str(failure.parameters["learner"]).removeprefix("given:"),
                "samples": failure.parameters["samples"],
                "replicate": failure.replicate,
                "error": failure.error,
            }
            for failure in self.study.failures
        ]

    @property
    def table(self) -> list[dict[str, Any]]:
        """A row for each learner, number of rows and feature, and for each step of learners in time."""
        return [
            {
                "learner": curve.learner,
                "samples": curve.rows or int(n),
                "step": int(n) if curve.rows else None,
                "feature": name,
                "learned_share": _plain(curve.mean[i, k]),
                "standard_error": _plain(curve.error[i, k]),
                "replicates": len(curve.replicates[i]),
            }
            for curve in (*self.curves, *self.in_time)
            for i, n in enumerate(curve.sizes)
            for k, name in enumerate(self.names)
        ]

    @property
    def half_samples(self) -> list[dict[str, Any]]:
        """Rows at which half of a feature is learned, by learner and feature, with an interval."""
        return self._halves(self.curves)

    @property
    def half_steps(self) -> list[dict[str, Any]]:
        """Training steps at which half of a feature is learned, as `half_samples`."""
        return self._halves(self.in_time)

    def _halves(self, curves: Sequence[LearnerCurve]) -> list[dict[str, Any]]:
        found = []
        for curve in curves:
            references = (
                {} if curve.rows else {name: self.half_of(name) for name in self.references}
            )
            for k, (centre, *ends) in enumerate(zip(*curve.halves(), strict=True)):
                times = {
                    name: _positive(centre / half[k])
                    for name, half in references.items()
                    if 0 < half[k] < np.inf
                }
                status = "measured" if 0 < centre < np.inf else "within the first size"
                found.append(
                    {
                        "learner": curve.learner,
                        "feature": self.names[k],
                        **({"samples": curve.rows} if curve.rows else {}),
                        "half_steps" if curve.rows else "half_samples": _positive(centre),
                        "lower": _positive(ends[0]),
                        "upper": _positive(ends[1]),
                        "status": status if centre < np.inf else "not within the last size",
                        "times": {name: value for name, value in times.items() if value},
                    }
                )
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data: `features`, `half_samples` and `references`."""
        references = {
            name: {
                "half_samples": [_plain(half) for half in self.half_of(name)],
                "samples": [round(float(n), 1) for n in sizes],
                "learned_share": [[_plain(value) for value in row] for row in shares],
            }
            for name, (sizes, shares) in self.references.items()
        }
        return {
            "target": self.target,
            "settings": self.settings,
            "features": self.table,
            "half_samples": self.half_samples,
            "half_steps": self.half_steps,
            "references": references,
            "failed": self.failures,
        }

    @property
    def directory(self) -> Path:
        """Run directory."""
        return self.study.directory


def references_of(
    target: str, settings: str, names: tuple[str, ...], sizes: np.ndarray
) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Compute all references that have a theory for this target, in the order in which they are named."""
    # more sizes than those of the probe, on both sides
    wide = np.geomspace(max(float(sizes.min()) / 32, 4), float(sizes.max()) * 8, 36)
    found = {}
    for name in (BAYES, SPECTRAL, KERNEL):
        shares = reference_shares(name, target, settings, names, wide)
        if shares is not None and np.isfinite(shares).any():
            found[name] = wide, shares
    return found


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _positive(value: float) -> float | None:
    return float(value) if 0 < value < np.inf else None
