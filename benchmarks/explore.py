"""Seconds from a moved slider to the figures of `solvable explore`, for every system.

Each slider moves to three new values in one warm process on one BLAS thread; the lines of every panel
are drawn as data. A system that cannot be this fast gives a coarse line of few predictions.
"""

from __future__ import annotations

import csv
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from solvable.explore.controls import Control, controls
from solvable.explore.lines import theory_figures
from solvable.frame import registry
from solvable.frame.system import System

SECONDS = 0.15
"""Budget of a line, as on the page."""

COLUMNS = ("system", "slider", "value", "cpu_seconds", "seconds", "predictions", "figures")


def places(control: Control) -> list[Any]:
    """Return three values across a slider."""
    shares = np.array([0.25, 0.55, 0.8])
    if control.scale == "log":
        values = control.low * (control.high / control.low) ** shares
    else:
        values = control.low + (control.high - control.low) * shares
    return [round(v) if control.integer else float(f"{v:.3g}") for v in values.tolist()]


def moves(system: System) -> list[tuple[Any, ...]]:
    """Return a row per move of a slider."""
    theory_figures(system, {}, seconds=SECONDS)
    rows = []
    for control in controls(system):
        for value in places(control) if control.kind == "slider" else []:
            cpu, wall = time.process_time(), time.perf_counter()
            lines = theory_figures(system, {control.name: value}, seconds=SECONDS)
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            if not lines.refusal:
                cells = (round(cpu, 3), round(wall, 3), lines.predictions, len(lines.figures))
                rows.append((system.name, control.name, value, *cells))
    return rows


def main() -> None:
    """Measure the systems named as arguments, or all, and write the table."""
    names = sys.argv[1:] or [listing.name for listing in registry.available()]
    with (Path(__file__).parent / "explore.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name in names:
            with threadpool_limits(limits=1):
                rows = moves(registry.load(name))
            writer.writerows(rows)
            file.flush()
            seconds = [row[3] for row in rows]
            print(
                f"{name}: median {np.median(seconds):.2f} s, largest {max(seconds):.2f} s",
                flush=True,
            )


if __name__ == "__main__":
    main()
