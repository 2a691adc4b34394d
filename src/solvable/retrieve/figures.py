"""Figures of training: quality against cost, and spectra through the phases."""

from __future__ import annotations

import numpy as np

from solvable.plots.figure import Figure, Marker, Series
from solvable.retrieve.phases import PIPELINES, stage_name
from solvable.retrieve.results import Trained
from solvable.retrieve.seed_runs import START


def train_figures(found: Trained) -> list[Figure]:
    """Return the figures of a run."""
    return [
        *(_quality(found, test) for test in found.tests),
        _kernel(found),
        _moments(found),
    ]


def _steps(found: Trained, pipeline: str) -> list[str]:
    phases = PIPELINES[pipeline]
    return [stage_name(phases[:count]) for count in range(1, len(phases) + 1)]


def _quality(found: Trained, test: str) -> Figure:
    series = []
    for colour, pipeline in enumerate(found.pipelines):
        stages = _steps(found, pipeline)
        held = [found.quality(stage, test) for stage in stages]
        cost = [found.of_stage(stage)[0].documents for stage in stages]
        errors = [(one.upper - one.lower) / 3.92 for one in held]
        values = [one.value for one in held]
        series.append(Series(pipeline, cost, values, "dashed", colour=colour))
        series.append(Series(f"{pipeline}, measured", cost, values, "points", errors, colour))
    return Figure(
        f"ndcg-{test.replace(' ', '-')}",
        f"Quality against cost, {test}",
        "documents encoded for training",
        "nDCG@10",
        series,
        "The three points of a pipeline follow its phases: unsupervised, supervised, distillation. Bars "
        "are standard errors over queries.",
    )


def _kernel(found: Trained) -> Figure:
    series = []
    names = found.labels()
    for colour, stage in enumerate((START, *_steps(found, found.pipelines[-1]))):
        kernels = [one.spectrum.kernel for one in found.of_stage(stage)]
        values = np.mean([np.array(one) / max(sum(one), 1e-300) for one in kernels], axis=0)
        ranks = np.arange(1, len(values) + 1)
        series.append(Series(names[stage], ranks, values, colour=colour))
    return Figure(
        "kernel",
        f"Spectrum of S through the phases of {found.pipelines[-1]}",
        "index of the eigenvalue (largest first)",
        "share of the trace",
        series,
        "Eigenvalues of S = WᵀW in whitened token coordinates, mean over seeds.",
        x_scale="log",
        y_scale="log",
    )


def _moments(found: Trained) -> Figure:
    stage = stage_name(PIPELINES[found.pipelines[-1]])
    held = found.of_stage(stage)[0].spectrum
    counts, edges = np.histogram(held.moments, bins=30)
    return Figure(
        "moments",
        "Directions shared by queries and documents",
        "eigenvalue of the moment",
        "count",
        [Series("measured", edges, counts, "histogram")],
        f"Largest eigenvalues of the moment of pooled pairs after pipeline {found.pipelines[-1]}: "
        f"{held.outliers} exceed the largest one with permuted documents.",
        markers=[Marker(held.edge, "edge with permuted documents")],
    )
