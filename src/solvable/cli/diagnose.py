"""``solvable diagnose``: what the spectra of stored weights say."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from solvable.cli.settings import Flag

if TYPE_CHECKING:
    from solvable.diagnose.diagnosis import Diagnosed, MatrixDiagnosis
    from solvable.diagnose.report import DiagnoseFiles
    from solvable.diagnose.weights import StoredArray
    from solvable.study.run import Progress

START = 4.0
"""Cost of starting a process, in that of a small matrix."""

NOTHING_FITTED = 1
"""Exit status: the file was read, and no matrix in it could be fitted."""


def diagnose(
    weights: Path,
    /,
    *,
    initial: Path | None = None,
    seed: int = 0,
    workers: int | None = None,
    output: Path | None = None,
    json: Flag = False,
    quiet: Flag = False,
) -> int:
    """Tell noise from learned features in the weight matrices of a file.

    For example:
      solvable diagnose model.safetensors
      solvable diagnose model.safetensors --initial before.safetensors
      solvable diagnose weights.npz --output diagnosis --json > rows.json

    WEIGHTS is a .safetensors, .npz or .npy file; nothing in it is ever executed.
    Save scikit-learn's coefs_ with numpy.savez, a state dict of torch with
    safetensors.torch.save_file. The spectrum of each matrix is explained as a
    bulk of noise and signals beyond it, or as a power law, or as neither; each
    law is tested before it is believed. Told are the phase with its lead over
    the runner-up, noise, shrinkage, learned features with intervals, tail
    exponent, and what pruning would keep. No data are needed.

    The output directory holds report.html and result.json. Exit status 1 if no
    matrix could be fitted.

    Parameters
    ----------
    weights
        File of weights.
    initial
        The weights before training, under the same names: what has changed?
    seed
        Of the bootstraps.
    workers
        Local processes. [default: one per core]
    output
        Directory. [default: solvable-runs/diagnose-NAME-FINGERPRINT]
    json
        Print the content of result.json and nothing else.
    quiet
        Print nothing but errors (and the JSON).
    """
    from solvable.cli.terminal import status_line, write_json
    from solvable.diagnose.report import DIRECTORY, content_of, fingerprint_of, write_files
    from solvable.study.dispatch import count_workers

    lanes = count_workers(workers)
    with status_line("reading", shown=not quiet):
        arrays = _arrays(weights)
        if initial is not None:
            _arrays(initial)
        fingerprint = fingerprint_of(weights, initial, seed)
    directory = output or DIRECTORY.default(weights.name, fingerprint)
    with DIRECTORY.reserved(directory, fingerprint):
        found = _fit(weights, initial, arrays, seed, lanes, quiet=quiet)
        command = _command(weights, initial, seed)
        content = content_of(found, command=command, fingerprint=fingerprint)
        with status_line("writing report", shown=not quiet):
            files = write_files(found, content, directory)
    if json:
        write_json(content | {"files": files.to_dict()})
    elif not quiet:
        _tell(found, files)
    if not found.complete:
        raise KeyboardInterrupt
    return 0 if found.fitted else NOTHING_FITTED


def _arrays(path: Path) -> list[StoredArray]:
    """What the header of a file announces; raises where nothing can be read."""
    from solvable.diagnose.weights import iter_weights
    from solvable.errors import InvalidData

    arrays = list(iter_weights(path))
    if not arrays:
        raise InvalidData(f"{path} holds no array; pass a file of weights.")
    return arrays


def _fit(
    path: Path,
    initial: Path | None,
    arrays: list[StoredArray],
    seed: int,
    workers: int,
    *,
    quiet: bool,
) -> Diagnosed:
    """Diagnose all arrays; what was done is kept if the user interrupts."""
    from solvable.cli.terminal import note, progress_bar
    from solvable.diagnose.diagnosis import Diagnosed
    from solvable.diagnose.file import diagnose_file
    from solvable.diagnose.words import counted

    matrices = sum(len(one.shape) > 1 for one in arrays)
    # A process takes seconds to start.
    lanes = max(1, min(workers, matrices, int(sum(_cost(one.shape) for one in arrays) / START)))
    if not quiet:
        note(f"{path.name}: {counted(matrices, 'matrix', 'matrices')}, {counted(lanes, 'worker')}")
    rows: list[MatrixDiagnosis] = []
    started = time.monotonic()
    with progress_bar(shown=not quiet) as show:
        try:
            for row in diagnose_file(path, initial=initial, seed=seed, workers=lanes):
                rows.append(row)
                _progress(show, rows, arrays, started)
        except KeyboardInterrupt:
            if not any(row.fitted for row in rows):
                raise
    return Diagnosed(
        path.name,
        tuple(rows),
        seed=seed,
        initial=initial.name if initial else "",
        seconds=time.monotonic() - started,
        n_arrays=len(arrays),
        versions=_versions(),
    )


def _progress(
    show: Progress, rows: list[MatrixDiagnosis], arrays: list[StoredArray], started: float
) -> None:
    """Tell how many matrices are done; the time left goes by what a decomposition costs."""
    costs = [_cost(one.shape) for one in arrays]
    done = sum(costs[: len(rows)])
    elapsed = time.monotonic() - started
    left = elapsed * (sum(costs) - done) / done if done else None
    matrices = [len(one.shape) > 1 for one in arrays]
    show(sum(matrices[: len(rows)]), sum(matrices), left)


def _cost(shape: tuple[int, ...]) -> float:
    """Relative time of a matrix: bootstraps take about as long as decomposing 2000 columns."""
    import math

    if len(shape) < 2 or 0 in shape:
        return 0.0
    short = min(shape[0], math.prod(shape[1:]))
    return 1.0 + short * math.prod(shape) / 2000**3


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("solvable", "numpy", "scipy")}


def _command(weights: Path, initial: Path | None, seed: int) -> str:
    """Words that repeat what was done; only what differs from the defaults is spelled out."""
    import shlex

    words = ["solvable", "diagnose", str(weights)]
    words += ["--initial", str(initial)] if initial else []
    words += ["--seed", str(seed)] if seed else []
    return shlex.join(words)


def _tell(found: Diagnosed, files: DiagnoseFiles) -> None:
    from rich.text import Text

    from solvable.cli.terminal import write
    from solvable.diagnose import words
    from solvable.diagnose.tables import matrix_table, plain, window

    def prose(*sentences: str, style: str = "") -> None:
        # As Text it is broken between words.
        write(*(Text(one, style=style) for one in sentences))

    prose(f"{found.name}: {words.subject(found)}", style="bold")
    if found.fitted:
        width = window()
        table, dropped = matrix_table(found, width)
        write("", table if width else plain(table), "")
        prose(*words.legend(found), style="dim")
        if dropped:
            prose(f"Not shown in a window of this width: {', '.join(dropped)}.", style="dim")
    write("")
    prose("What did the matrices learn?", style="bold")
    prose(words.headline(found), *(f"- {one}" for one in words.meanings(found)))
    for title, sentences in words.sections(found):
        write("")
        prose(title, style="bold")
        prose(*(f"- {one}" if len(sentences) > 1 else one for one in sentences))
    write("", f"report   {files.report}", f"result   {files.result}")
