"""``solvable diagnose`` of several checkpoints of one training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solvable.diagnose.checkpoints.series import Order


def follow(
    paths: Sequence[Path],
    order: Order,
    heads: int | None,
    seed: int,
    workers: int,
    output: Path | None,
    json: bool,
    progress: bool,
    quiet: bool,
) -> int:
    """Diagnose a series of checkpoints, write its files and print the answer."""
    import sys

    from solvable.cli.terminal import note, repeated, status_line, write, write_json
    from solvable.diagnose.checkpoints.measuring import diagnose_series
    from solvable.diagnose.checkpoints.report import reserve, write_files
    from solvable.diagnose.checkpoints.series import open_series
    from solvable.diagnose.checkpoints.view import checkpoints_text
    from solvable.diagnose.jobs import KeptRows
    from solvable.plots.words import counted
    from solvable.progress import progress_bar

    with status_line("reading", shown=not quiet):
        series = open_series(list(paths), order=order)
        directory, fingerprint = reserve(series, output, f"{seed} {heads} {order}")
    kept = KeptRows.beside(directory, fingerprint)
    if not quiet:
        note(f"{series.name}: {counted(len(series.checkpoints), 'checkpoint')}. {series.order}")
    with progress_bar(shown=not quiet, lines=progress, unit="matrices") as show:
        found = diagnose_series(
            series,
            heads=heads,
            seed=seed,
            workers=workers,
            progress=show,
            kept=kept,
        )
    by = order if order != "name" else None
    command = repeated("diagnose", *paths, order=by, heads=heads, seed=seed)
    with status_line("writing report", shown=not quiet):
        files, content = write_files(found, directory, command=command, fingerprint=fingerprint)
    kept.remove()
    if json:
        write_json(content | {"files": files})
    elif not quiet:
        write(*checkpoints_text(found, files, sys.stdout))
    # Status 1: the files were read, but no matrix can be measured.
    every = (one for row in found.histories for one in row.measurements)
    return 0 if any(one is not None and one.norm is not None for one in every) else 1
