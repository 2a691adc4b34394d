"""``solvable diagnose``: noise and learned features in stored weights."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from solvable.cli.settings import Flag

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from solvable.diagnose.diagnosed import Diagnosed
    from solvable.diagnose.jobs import KeptRows


def diagnose(
    weights: Path,
    /,
    *checkpoints: Path,
    initial: Path | None = None,
    adapter: Flag = False,
    key: str | None = None,
    heads: int | None = None,
    pair: list[tuple[str, str]] | None = None,
    inputs_first: Flag = False,
    evaluate: str | None = None,
    quick: Flag = False,
    order: Literal["name", "time", "given"] = "name",
    seed: int = 0,
    workers: int | None = None,
    memory: float | None = None,
    output: Path | None = None,
    details: Flag = False,
    check: Flag = False,
    csv: Flag = False,
    json: Flag = False,
    progress: Flag = False,
    quiet: Flag = False,
) -> int:
    """Separate learned features from noise in the weight matrices of a file or folder.

    For example:
      solvable diagnose model.safetensors
      solvable diagnose model.safetensors --initial before.safetensors
      solvable diagnose weights.npz --quick --csv > rows.csv
      solvable diagnose weights.npz --evaluate loss.py:loss
      solvable diagnose gpt.safetensors --heads 12
      solvable diagnose my-model/
      solvable diagnose weights.npz --pair W_Q W_K --heads 8
      solvable diagnose training/checkpoint-*

    WEIGHTS is a folder as model hubs lay it out, or one file: .safetensors, .npz, .npy,
    .pt, .pth, .bin (with the extra torch), .onnx, .h5, .keras or .gguf (with the extra
    weights); nothing in it is ever executed. Models in Python, also of scikit-learn, are
    passed to solvable.diagnose_weights. Each spectrum is fitted by a bulk of noise with
    signals beyond it, by a power law, or by neither, and every law is tested.
    The output lists for each matrix a lower bound on its directions, what had to be taken
    out (single entries, rows, columns, a mean), its phase, and its learned features. No data
    are needed.

    If array names mark queries and keys, the product query^T key of each attention
    head is diagnosed as one matrix: its learned directions, and noise from the
    initial weights or noise that a penalty has cut.

    Several files or folders, or a folder of checkpoints, are one training: directions, stable
    rank and norm of each matrix are drawn along it, and the output states which matrices
    stopped changing.

    The output directory holds report.html, rows.csv and result.json. A run that was stopped or
    killed goes on from its finished matrices if the same command is run again.

    Parameters
    ----------
    weights
        File or folder of weights.
    checkpoints
        Further checkpoints of the same training.
    initial
        The weights before training, under the same names; the change is diagnosed too.
    adapter
        Also write the change since --initial as LoRA factors, into the folder adapter of the output.
    key
        Dictionary in a checkpoint, such as ema. [default: the state dict of the model]
    heads
        Number of attention heads. [default: read from the file or from config.json next to it]
    pair
        Names of a query array and its key array, if not found automatically; repeatable.
    inputs_first
        The arrays of --pair are stored as (inputs, outputs), as in GPT-2; torch stores (outputs, inputs).
    evaluate
        FILE.py:FUNCTION, which takes a dictionary of arrays and returns a loss above 0; the smallest rank
        of each matrix that keeps it within 1 % is measured by bisection. Executes your file.
    quick
        Only lower bound, stable rank, outliers and change of each matrix, in a tenth of the time: no law
        is fitted.
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
    check
        End with status 1 if a matrix has entries that are not finite, dead rows, or (with --initial) has
        lost half of its directions.
    details
        Also print each matrix's size, noise, shrinkage and tail exponent.
    csv
        Print only the table, as in rows.csv.
    json
        Print only the content of result.json.
    progress
        In a pipe or a log, write a line of progress to standard error each minute.
    quiet
        Print only errors (and the JSON).
    """
    from dataclasses import replace

    from solvable.arrays import check_integer
    from solvable.cli.checkpoints import follow
    from solvable.cli.terminal import note, repeated, status_line, write, write_json
    from solvable.diagnose.attention.heads_of_file import AttentionRequest
    from solvable.diagnose.checkpoints.series import is_series
    from solvable.diagnose.jobs import KeptRows, memory_limit
    from solvable.diagnose.matrices_of_file import announced, diagnose_whole, opened
    from solvable.diagnose.measured_ranks import evaluations_of, measure_ranks
    from solvable.diagnose.report import reserved_directory, write_files
    from solvable.diagnose.view import diagnosis_text
    from solvable.diagnose.words import alarms
    from solvable.errors import InvalidParameter
    from solvable.progress import progress_bar
    from solvable.study.dispatch import count_workers

    check_integer("--seed", seed, 0)
    lanes = count_workers(workers)
    memory_limit(memory)
    of_one_file = {
        "--initial": initial is not None,
        "--adapter": adapter,
        "--pair": pair,
        "--evaluate": evaluate,
        "--details": details,
        "--check": check,
        "--csv": csv,
        "--quick": quick,
        "--key": key,
    }
    if is_series([weights, *checkpoints]):
        _refuse(
            of_one_file | {"--inputs-first": inputs_first, "--memory": memory is not None},
            "several checkpoints",
            "--order, --heads, --seed, --workers",
            "Diagnose one checkpoint alone",
        )
        return follow(
            [weights, *checkpoints], order, heads, seed, lanes, output, json, progress, quiet
        )
    if adapter and initial is None:
        raise InvalidParameter(
            "--adapter was given without --initial, and writes the change since then; give both."
        )
    request = AttentionRequest(heads, tuple(pair or ()), inputs_first)
    with status_line("reading", shown=not quiet):
        source = opened(weights, key)
        before = None if initial is None else opened(initial)
    with status_line("reading", shown=not quiet):
        header = announced(source, before, request, lanes, memory, laws=not quick)
        wanted = f"{seed}{header.attention}{' quick' * quick}{' adapter' * adapter}"
        wanted += (f" {evaluate}" if evaluate else "") + (f" --key {key}" if key else "")
        directory, fingerprint = reserved_directory(output, source, before, wanted)
    kept = KeptRows.beside(directory, fingerprint)
    loss = _loss(evaluate) if evaluate else None
    if not quiet:
        note(header.text)
        if loss:
            note(f"{evaluate}: {evaluations_of(source.unchanged)} evaluations")
        _note_kept(kept)
    with progress_bar(shown=not quiet, lines=progress) as show:
        found = diagnose_whole(
            source,
            initial=before,
            request=request,
            laws=not quick,
            seed=seed,
            workers=lanes,
            memory=memory,
            progress=show,
            keeper=kept,
        )
        if loss and found.complete:
            found = replace(found, needed=measure_ranks(source, loss, progress=show))
    _refuse_unmeasured(found, kept)
    with status_line("writing report", shown=not quiet):
        options: dict[str, object] = {
            "initial": initial,
            "heads": heads,
            "pair": pair,
            "quick": quick,
        }
        options |= {"evaluate": evaluate, "inputs_first": inputs_first, "seed": seed}
        command = repeated("diagnose", weights, **options, adapter=adapter, key=key)
        changed = (source, before) if adapter and before else None
        files, content = write_files(
            found, directory, command=command, fingerprint=fingerprint, changed=changed
        )
        found = replace(found, notes=tuple(content["notes"]))
    if found.complete:
        kept.remove()
    if json:
        write_json(content | {"files": files.to_dict()})
    elif csv:
        write(files.rows.read_text().rstrip("\n"))
    elif not quiet:
        write(*diagnosis_text(found, files.to_dict(), sys.stdout, details=details))
    if not found.complete:
        raise KeyboardInterrupt
    return 1 if check and alarms(found) else 0


def _loss(name: str) -> Callable[..., object]:
    """Execute the user's file, and return the function that it names."""
    from contextlib import redirect_stdout

    from solvable.errors import InvalidParameter
    from solvable.probes.named_objects import imported

    # What the file prints must not mix with the numbers on standard output.
    with redirect_stdout(sys.stderr):
        found = imported(name, "--evaluate")
    if not callable(found):
        raise InvalidParameter(
            f"--evaluate names {name}, which is no function; allowed: a function that takes a "
            "dictionary of arrays by name and returns the loss, or the losses of held-out rows."
        )
    return found


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


def _note_kept(kept: KeptRows) -> None:
    """Print how many results of a stopped run are used again."""
    from solvable.cli.terminal import note
    from solvable.plots.words import counted

    rows = len(kept.found())
    if rows:
        note(f"{counted(rows, 'result')} of an earlier run are read from {kept.path.name}")
