"""``solvable diagnose``: noise and learned features in stored weights."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from solvable.cli.settings import Flag

if TYPE_CHECKING:
    from collections.abc import Mapping

    from solvable.data.weights.stored import Weights
    from solvable.diagnose.attention.heads_of_file import AttentionRequest
    from solvable.diagnose.diagnosed import Diagnosed
    from solvable.diagnose.kept_rows import KeptRows


def diagnose(
    weights: Path,
    /,
    *checkpoints: Path,
    initial: Path | None = None,
    heads: int | None = None,
    pair: list[tuple[str, str]] | None = None,
    inputs_first: Flag = False,
    prune: Path | None = None,
    factors: Flag = False,
    evaluate: str | None = None,
    quick: Flag = False,
    order: Literal["name", "time", "given"] = "name",
    seed: int = 0,
    workers: int | None = None,
    memory: float | None = None,
    output: Path | None = None,
    details: Flag = False,
    json: Flag = False,
    progress: Flag = False,
    quiet: Flag = False,
) -> int:
    """Separate learned features from noise in the weight matrices of a file or folder.

    For example:
      solvable diagnose model.safetensors
      solvable diagnose model.safetensors --initial before.safetensors
      solvable diagnose weights.npz --output diagnosis --json > rows.json
      solvable diagnose gpt.safetensors --heads 12
      solvable diagnose my-model/
      solvable diagnose weights.npz --pair W_Q W_K --heads 8
      solvable diagnose model.safetensors --prune smaller --evaluate loss.py:loss
      solvable diagnose training/checkpoint-*

    WEIGHTS is a folder as model hubs lay it out, or one file: .safetensors, .npz, .npy,
    .pt, .pth, .bin (with the extra torch), .onnx, .h5, .keras or .gguf (with the extra
    weights); nothing in it is ever executed. Models in Python, also of scikit-learn, are
    passed to solvable.diagnose_weights. Each spectrum is fitted by a bulk of noise with
    signals beyond it, by a power law, or by neither, and every law is tested.
    The output lists the phase of each matrix, its learned features, and the values
    that a cut at the edge of the noise would keep. No data are needed. To
    know the effect of a cut on the loss, measure the loss on held-out data: --prune writes
    copies with all suggested cuts (pruned) and with the best size of each value kept
    (denoised), and --evaluate measures and ranks them.

    If array names mark queries and keys, the product query^T key of each attention
    head is diagnosed as one matrix: its learned directions, and noise from the
    initial weights or noise that a penalty has cut.

    Several files or folders, or a folder of checkpoints, are one training: phase, features,
    tail and norm of each matrix are drawn along it, and the output states which matrices
    stopped changing and which show signs of overfitting.

    The output directory holds report.html and result.json. A run that was stopped or
    killed goes on from its finished matrices if the same command is run again. The exit
    status is 1 if no matrix could be fitted.

    Parameters
    ----------
    weights
        File or folder of weights.
    checkpoints
        Further checkpoints of the same training.
    initial
        The weights before training, under the same names; the change is diagnosed too.
    heads
        Number of attention heads. [default: read from the file or from config.json next to it]
    pair
        Names of a query array and its key array, if not found automatically; repeatable.
    inputs_first
        The arrays of --pair are stored as (inputs, outputs), as in GPT-2; torch stores (outputs, inputs).
    prune
        New directory for pruned and denoised weights, in the format that was read.
    factors
        With --prune, also write each cut matrix as two thin factors, NAME.left and NAME.right.
    evaluate
        FILE.py:FUNCTION, which takes the path of weights and returns the loss, or the losses of all
        held-out rows; executes your file.
    quick
        Only norm, stable rank, edge and tail of each matrix, untested, for sorting and plotting.
    order
        Order of checkpoints: by the step or epoch in their names, by the time of writing, or as given.
    seed
        Random seed of the bootstraps.
    workers
        Number of local processes. [default: one per core]
    memory
        Gigabytes that all processes together may use; fewer run if their matrices do not fit.
        [default: 4, or half of the free memory if that is less]
    output
        Directory of the results. [default: solvable-runs/diagnose-NAME-FINGERPRINT]
    details
        Also print each matrix's size, lead, noise, shrinkage and tail exponent.
    json
        Print only the content of result.json.
    progress
        In a pipe or a log, write a line of progress to standard error each minute.
    quiet
        Print only errors (and the JSON).
    """
    from solvable.arrays import check_integer
    from solvable.cli.checkpoints import follow
    from solvable.cli.terminal import note, status_line, write, write_json
    from solvable.diagnose.answer_text import diagnosis_text
    from solvable.diagnose.attention.heads_of_file import AttentionRequest
    from solvable.diagnose.checkpoints.series import is_series
    from solvable.diagnose.job_sizes import memory_limit
    from solvable.diagnose.kept_rows import KeptRows
    from solvable.diagnose.matrices_of_file import announced, opened
    from solvable.diagnose.pruning.run import request_of
    from solvable.diagnose.report import reserved_directory, write_files
    from solvable.diagnose.whole import diagnosed
    from solvable.progress import progress_bar
    from solvable.study.dispatch import count_workers

    check_integer("--seed", seed, 0)
    lanes = count_workers(workers)
    memory_limit(memory)
    of_one_file = {
        "--initial": initial is not None,
        "--pair": pair,
        "--details": details,
        "--prune, --factors or --evaluate": prune or factors or evaluate,
    }
    if is_series([weights, *checkpoints]):
        _refuse(
            of_one_file | {"--inputs-first": inputs_first, "--memory": memory is not None},
            "several checkpoints",
            "--order, --quick, --heads, --seed, --workers",
            "Diagnose one checkpoint alone",
        )
        return follow(
            [weights, *checkpoints], order, heads, quick, seed, lanes, output, json, progress, quiet
        )
    request = AttentionRequest(heads, tuple(pair or ()), inputs_first)
    wanted = request_of(prune, factors, evaluate)
    with status_line("reading", shown=not quiet):
        source = opened(weights)
        before = None if initial is None else opened(initial)
    if quick:
        allowed = "--heads, --seed, --workers, --memory"
        _refuse(of_one_file, "--quick", allowed, "Leave out --quick")
        return _quick(source, heads, seed, lanes, memory, output, json, progress, quiet)
    with status_line("reading", shown=not quiet):
        header = announced(source, before, request, lanes, memory)
        directory, fingerprint = reserved_directory(
            output, source, before, f"{seed}{header.attention}{_pruning(prune, factors, evaluate)}"
        )
    kept = KeptRows.beside(directory, fingerprint)
    if not quiet:
        note(header.text)
        _note_kept(kept)
    with progress_bar(shown=not quiet, lines=progress) as show:
        found = diagnosed(
            source,
            wanted,
            initial=before,
            request=request,
            seed=seed,
            workers=lanes,
            memory=memory,
            progress=show,
            keeper=kept,
        )
    _refuse_unmeasured(found, kept)
    with status_line("writing report", shown=not quiet):
        command = _command(weights, initial, seed, request) + _pruning(prune, factors, evaluate)
        files, content = write_files(found, directory, command=command, fingerprint=fingerprint)
    if found.complete:
        kept.remove()
    if json:
        write_json(content | {"files": files.to_dict()})
    elif not quiet:
        write(*diagnosis_text(found, files, sys.stdout, details=details))
    if not found.complete:
        raise KeyboardInterrupt
    # Status 1: the file was read, but no matrix in it could be fitted.
    return 0 if found.fitted or any(row.fitted for row in found.heads) else 1


def _refuse_unmeasured(found: Diagnosed, kept: KeptRows) -> None:
    """Raise if no array has a single number to report, for example if all are integers or NaN."""
    from solvable.errors import InvalidData

    if found.complete and found.rows and all(row.norm is None for row in found.rows):
        kept.remove()
        row = next(iter((*found.refused, *found.rows)))
        raise InvalidData(
            f"{found.name}: no matrix can be measured. {row.name}: {row.reason.rstrip('.')}."
        )


def _refuse(options: Mapping[str, object], where: str, allowed: str, remedy: str) -> None:
    """Raise if an option is given that has no meaning there."""
    from solvable.errors import InvalidParameter

    for name, given in options.items():
        if given:
            raise InvalidParameter(
                f"{name} was given with {where}; allowed: {allowed}, --output, --json, --progress, "
                f"--quiet. {remedy}, or leave out {name}."
            )


def _quick(
    source: Weights,
    heads: int | None,
    seed: int,
    workers: int,
    memory: float | None,
    output: Path | None,
    json: bool,
    progress: bool,
    quiet: bool,
) -> int:
    """Measure all matrices and print them, without a report."""
    import time

    from solvable.cli.terminal import note, status_line, write, write_json
    from solvable.diagnose.kept_rows import KeptRows
    from solvable.diagnose.quick import measured
    from solvable.diagnose.quick_output import DIRECTORY, quick_text, write_quick
    from solvable.diagnose.report import reserved_directory
    from solvable.progress import progress_bar

    with status_line("reading", shown=not quiet):
        directory, fingerprint = reserved_directory(
            output, source, None, f"{seed} {heads}", DIRECTORY
        )
    kept = KeptRows.beside(directory, fingerprint)
    if not quiet:
        _note_kept(kept)
    started = time.monotonic()
    with progress_bar(shown=not quiet, lines=progress) as show:
        rows = measured(
            source,
            heads=heads,
            workers=workers,
            memory=memory,
            seed=seed,
            progress=show,
            keeper=kept,
        )
    seconds = time.monotonic() - started
    files, content = write_quick(source, rows, directory, fingerprint, seconds)
    kept.remove()
    if json:
        write_json(content | {"files": files})
    elif not quiet:
        note(f"{source.name}: {seconds:.0f} s")
        write(*quick_text(source, rows, files))
    return 0 if any(row.norm is not None for row in rows) else 1


def _note_kept(kept: KeptRows) -> None:
    """Print how many results of a stopped run are used again."""
    from solvable.cli.terminal import note
    from solvable.plots.words import counted

    rows = len(kept.found())
    if rows:
        note(f"{counted(rows, 'result')} of an earlier run are read from {kept.path.name}")


def _command(weights: Path, initial: Path | None, seed: int, request: AttentionRequest) -> str:
    """Return the command that repeats the diagnosis; options at their defaults are left out."""
    words = ["solvable", "diagnose", str(weights)]
    words += ["--initial", str(initial)] if initial else []
    words += ["--heads", str(request.heads)] if request.heads is not None else []
    for query, key in request.pairs:
        words += ["--pair", query, key]
    words += ["--inputs-first"] if request.inputs_first else []
    words += ["--seed", str(seed)] if seed else []
    return shlex.join(words)


def _pruning(prune: Path | None, factors: bool, evaluate: str | None) -> str:
    """Return the options about pruning as in the command, with a leading blank; empty without them."""
    words = ["--prune", str(prune)] if prune else []
    words += ["--factors"] if factors else []
    words += ["--evaluate", evaluate] if evaluate else []
    return f" {shlex.join(words)}" if words else ""
