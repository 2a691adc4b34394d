"""Settings of all tests: one BLAS thread, as in the library's workers, and Ctrl-C as in a terminal."""

from __future__ import annotations

import csv
import gc
import gzip
import os
import shlex
import signal
import sys
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings

from solvable.study.content import ParameterRow, ReportContent
from solvable.study.html import render_report
from solvable.systems.base import Figure, Marker, Point, Reference, Series, Verdict

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Rewritten tests and the library are compiled once, also where PYTHONDONTWRITEBYTECODE is set: a run has
# about 200 processes that read the library.
sys.dont_write_bytecode = False

LONG_FILES = (Path(__file__).parent / "long_files.txt").read_text("utf-8").split()

SLOW_TESTS = set((Path(__file__).parent / "slow_tests.txt").read_text("utf-8").splitlines())
"""Tests of several seconds whose files have quicker cases; they run with `-m slow`."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return 2 workers for the whole suite, and none if folders or files are named."""
    return 2 if config.args_source is pytest.Config.ArgsSource.TESTPATHS else 0


def pytest_configure(config: pytest.Config) -> None:
    """Let workers take files in the order of collection, instead of those with most tests first."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False
    # Hooks of this file see only paths below its folder; a plugin also sees the source.
    config.pluginmanager.register(FilesWithoutExamples())


class FilesWithoutExamples:
    """Skip source files without a doctest, whose import took ten seconds per worker."""

    @staticmethod
    def pytest_ignore_collect(collection_path: Path) -> bool | None:
        """Ignore a file of the source that has no prompt; None leaves the decision to others."""
        source = Path(__file__).parent.parent / "src"
        if collection_path.suffix != ".py" or not collection_path.is_relative_to(source):
            return None
        return True if b">>>" not in collection_path.read_bytes() else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests as quick unless they are slow or in a file of `long_files.txt`; move its files first."""
    tests = Path(__file__).parent
    # Both workers end at the same time if the last files are short.
    rank = {tests / name: place for place, name in enumerate(LONG_FILES)}
    items.sort(key=lambda item: rank.get(item.path, len(rank)))
    for item in items:
        within = item.path.is_relative_to(tests)
        name = item.nodeid.split("::", 1)[-1]
        if within and f"{item.path.relative_to(tests).as_posix()}::{name}" in SLOW_TESTS:
            item.add_marker(pytest.mark.slow)
        long = within and item.path.relative_to(tests).as_posix() in LONG_FILES
        if not long and item.get_closest_marker("slow") is None:
            item.add_marker(pytest.mark.quick)


# Garbage collection took an eighth of the time: it visited all collected tests again and again.
gc.disable()


def pytest_collection_finish() -> None:
    """Exempt the collected tests from garbage collection, and collect less often than usual."""
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 20, 20)


# No deadline for examples of hypothesis: two workers may wait for each other.
settings.register_profile("any machine", deadline=None)
settings.load_profile("any machine")

# Shells start background jobs with Ctrl-C ignored, and child processes inherit this.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def one_thread():
    """Limit BLAS libraries that were loaded before the environment variables were set."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        yield


@pytest.fixture
def bundled_csv(tmp_path: Path) -> Callable[[int, int], Path]:
    """Return a function that writes a table of OpenML as CSV, given its number and number of rows."""

    def write(number: int, n_rows: int) -> Path:
        folder = files("sklearn.datasets.tests.data.openml") / f"id_{number}"
        (packed,) = (file for file in folder.iterdir() if file.name.endswith(".arff.gz"))
        lines = gzip.decompress(packed.read_bytes()).decode().splitlines()
        lines = [line for line in lines if line and not line.startswith("%")]
        start = next(i for i, line in enumerate(lines) if line.lower() == "@data")
        attributes = [line for line in lines[:start] if line.lower().startswith("@attribute")]
        names = [shlex.split(line)[1] for line in attributes]
        quote = "'" if lines[start + 1].startswith("'") else '"'
        rows = list(csv.reader(lines[start + 1 :], quotechar=quote, strict=True))
        assert len(rows) == n_rows
        assert {len(row) for row in rows} == {len(names)}
        path = tmp_path / f"openml-{number}.csv"
        with path.open("w", newline="") as stream:
            csv.writer(stream).writerows([names, *rows])
        return path

    return write


SIZES = (1500.0, 4000.0, 12000.0, 36000.0, 100000.0, 300000.0)


def _overlap_figure(features: int, name: str = "overlap") -> Figure:
    """Return a figure of overlaps with prediction and threshold of each feature."""
    grid = np.geomspace(SIZES[0] / 2, SIZES[-1] * 2, 30)
    series, markers = [], []
    for i in range(features):
        threshold = 2000.0 * (i + 1) ** 1.6
        measured = np.clip(1 - threshold / np.array(SIZES), 0, None)
        label = f"feature {i + 1}"
        series.append(
            Series(f"{label}, theory", grid, np.clip(1 - threshold / grid, 0, None), colour=i)
        )
        series.append(Series(label, SIZES, measured, "points", np.full(6, 0.02), i))
        markers.append(Marker(threshold, f"n of {label}", i))
    return Figure(
        name,
        "Features appear one after another",
        "samples n",
        "squared overlap",
        series,
        "Each feature is found at its own sample size.",
        markers,
        x_scale="log",
        y_range=(-0.02, 1.02),
    )


def _spectrum_figure() -> Figure:
    values = np.random.default_rng(7).normal(size=500)
    counts, edges = np.histogram(values, bins=20)
    return Figure(
        "spectrum",
        "Features leave the bulk",
        "eigenvalue",
        "count",
        [Series("measured", edges, counts, "histogram")],
        markers=[Marker(-2.0, "bulk edge"), Marker(2.0, "bulk edge"), Marker(2.8, "feature 1", 0)],
        y_scale="log",
    )


@pytest.fixture(scope="session")
def overlap_figure() -> Callable[..., Figure]:
    return _overlap_figure


@pytest.fixture(scope="session")
def spectrum_figure() -> Figure:
    return _spectrum_figure()


@pytest.fixture(scope="session")
def verdicts() -> list[Verdict]:
    return [
        Verdict(
            "overlap-follows-theory",
            "The overlap follows the closed form.",
            "holds",
            measured=0.0131,
            standard_error=0.0042,
            expected=0.0,
            tolerance=0.05,
            reason="Largest deviation at n = 12,000.",
            source="arXiv:2605.14567 eq. 3.4",
            replicates=3,
        ),
        Verdict(
            "error-exponent", "The error falls as a power.", "fails", -0.41, 0.012, -0.375, 0.03
        ),
        Verdict(
            "rounding",
            "The transition is rounded.",
            "not testable",
            reason="add --set dimension=30",
        ),
    ]


@pytest.fixture(scope="session")
def points() -> list[Point]:
    rng = np.random.default_rng(3)
    return [
        Point(
            {"dimension": 60, "samples": int(n)},
            [
                {
                    "normalised_mse": float(rng.random()),
                    "squared_overlap": list(rng.random(3)),
                    "spectrum": list(rng.random(40)),
                }
                for _ in range(3)
            ],
            {"normalised_mse": 0.5, "squared_overlap": [0.9, 0.5, None], "threshold_samples": 2e3},
        )
        for n in SIZES
    ]


@pytest.fixture(scope="session")
def content(verdicts: list[Verdict], points: list[Point]) -> ReportContent:
    return ReportContent(
        title="Sequential recovery",
        system="sequential-recovery",
        summary="A quadratic form of :math:`h`.\n\nFeatures appear ``one`` after another.",
        parameters=[
            ParameterRow("samples", "1500, 4000", "Number of samples.", varied=True, allowed="≥ 2"),
            ParameterRow("dimension", "60", "Dimension of the inputs."),
        ],
        command="solvable run sequential-recovery --set samples=1500,4000",
        figures=[_overlap_figure(6), _overlap_figure(11, "overlap-11"), _spectrum_figure()],
        verdicts=verdicts,
        points=points,
        references=[Reference("someone2026", "@article{someone2026,\n  title = {Recovery}\n}")],
        facts={"seed": "0", "solvable": "0.1.0"},
        failures=[
            SimpleNamespace(
                parameters={"dimension": 60, "samples": 1500},
                replicate=2,
                error="NotConverged: stopped early",
            )
        ],
    )


@pytest.fixture(scope="session")
def report(content: ReportContent, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return render_report(content, tmp_path_factory.mktemp("report") / "report.html")
