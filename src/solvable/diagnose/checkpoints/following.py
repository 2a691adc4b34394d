"""Diagnosis of an opened series: measurements, histories, and notes."""

from __future__ import annotations

from importlib.metadata import version
from typing import TYPE_CHECKING

from solvable.diagnose.checkpoints.changes import Change
from solvable.diagnose.checkpoints.fits import Fit
from solvable.diagnose.checkpoints.history import DiagnosedCheckpoints, History
from solvable.diagnose.checkpoints.kept_fits import KeptFits
from solvable.diagnose.checkpoints.measuring import Measured, chosen_quick, measure
from solvable.diagnose.checkpoints.series import Series
from solvable.diagnose.checkpoints.verdicts import judged
from solvable.plots.words import listed

if TYPE_CHECKING:
    from solvable.progress import Progress


def diagnose_series(
    series: Series,
    *,
    quick: bool | None,
    heads: int | None,
    seed: int,
    workers: int,
    progress: Progress | None = None,
    kept: KeptFits | None = None,
) -> DiagnosedCheckpoints:
    """Measure an opened series, and judge the history of each matrix."""
    automatic = quick is None
    quick = chosen_quick(series, heads, workers) if quick is None else quick
    measured = measure(
        series, heads=heads, quick=quick, seed=seed, workers=workers, progress=progress, kept=kept
    )
    labels = tuple(part.label for part in series.checkpoints)
    histories, absent = _histories(measured, labels)
    notes = [*series.notes, *absent, *_identical(measured, labels)]
    if quick and automatic:
        notes.append(
            "Measured as with --quick, without tests, because the tests would take longer than ten "
            "minutes; fewer checkpoints are tested."
        )
    own = (note for part in series.checkpoints for note in part.weights.notes)
    return DiagnosedCheckpoints(
        series.name,
        labels,
        tuple(part.step for part in series.checkpoints),
        series.axis,
        series.order,
        histories,
        quick,
        seed,
        measured.seconds,
        tuple(dict.fromkeys([*notes, *own])),
        {name: version(name) for name in ("solvable", "numpy", "scipy")},
    )


def _histories(
    measured: Measured, labels: tuple[str, ...]
) -> tuple[tuple[History, ...], list[str]]:
    """Return the histories, and sentences about matrices that are missing somewhere."""
    absent: dict[tuple[str, ...], list[str]] = {}
    found, reshaped = [], []
    for name, fits in measured.fits.items():
        present = [place for place, fit in enumerate(fits) if fit is not None]
        last = fits[present[-1]]
        assert last is not None
        if len(present) < len(labels):
            gone = tuple(label for place, label in enumerate(labels) if place not in present)
            absent.setdefault(gone, []).append(name)
        changed = any(fit is not None and fit.shape != last.shape for fit in fits)
        if changed:
            reshaped.append(name)
        # An earlier shape is another matrix: its numbers cannot be compared with the last ones.
        same: tuple[Fit | None, ...] = tuple(
            fit if fit is not None and fit.shape == last.shape else None for fit in fits
        )
        changes = tuple(measured.changes.get(name, [Change()] * len(labels)))
        found.append(judged(History(name, last.shape, same, changes, note=last.reason)))
    notes = [f"{listed(names)}: not in {listed(gone)}." for gone, names in absent.items()]
    if reshaped:
        notes.append(f"{listed(reshaped)}: only the checkpoints with the last shape are compared.")
    return tuple(found), notes


def _identical(measured: Measured, labels: tuple[str, ...]) -> list[str]:
    """Name neighbouring checkpoints that hold the same weights."""
    notes = []
    for place in range(1, len(labels)):
        steps = [changes[place].previous for changes in measured.changes.values()]
        known = [step for step in steps if step is not None]
        if known and max(known) <= 0:
            notes.append(f"{labels[place - 1]} and {labels[place]} hold the same weights.")
    return notes
