"""``solvable learn``: which features the rows at hand can teach, and what more of them would buy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from solvable.cli.settings import Flag

if TYPE_CHECKING:
    from solvable.data import Dataset
    from solvable.learn.files import LearnFiles
    from solvable.learn.learning import Request
    from solvable.learn.results import Learned

Columns = Annotated[list[str] | None, Parameter(consume_multiple=True, negative=())]


def learn(
    data: str,
    /,
    *,
    target: str | None = None,
    task: Literal["auto", "classification", "regression"] = "auto",
    keep: Columns = None,
    folds: int = 5,
    layers: int = 1,
    rows: int = 20_000,
    seed: int = 0,
    workers: int | None = None,
    output: Path | None = None,
    json: Flag = False,
    quiet: Flag = False,
) -> int:
    """Learn features layer by layer, and say what they are worth on unseen rows.

    For example:
      solvable learn digits                      under a minute
      solvable learn mnist-5k                    about five minutes on two cores
      solvable learn patients.csv --target risk
      solvable learn patients.csv --target age --task regression --output age

    DATA is a CSV, NPZ or Parquet file, a folder of these or of images, or one of
    digits, mnist-5k, breast-cancer, wine, iris, diabetes. Told are: how many
    directions carry signal; the error beside a linear model, kernels and random
    features, on rows that none of them has seen; what 2 and 4 times the rows
    would buy. Nothing is trained by gradient descent.

    The output directory holds report.html, result.json, predictions.csv,
    figures/ and model.safetensors, which `solvable predict` uses.

    Parameters
    ----------
    data
        File, folder or name of a data set.
    target
        Column to predict.
    task
        Whether the target is a class or a number. [default: by its values]
    keep
        Columns to use though they look like row numbers.
    folds
        Parts of the data; each is predicted from the others.
    layers
        Filters, each with a layer below it.
    rows
        Most rows to learn from; of more, a random part is taken.
    seed
        Another seed deals other folds and draws other random layers.
    workers
        Local processes. [default: one per core]
    output
        Directory. [default: solvable-runs/learn-NAME-FINGERPRINT]
    json
        Print the content of result.json and nothing else.
    quiet
        Print nothing but errors (and the JSON).
    """
    from solvable.cli.terminal import status_line, write_json
    from solvable.learn.files import DIRECTORY, write_files
    from solvable.study.dispatch import count_workers

    lanes = count_workers(workers)
    with status_line("reading", shown=not quiet):
        request, dataset = _read(data, target, task, keep, (folds, layers, rows, seed))
        from solvable.learn.learning import fingerprint_of

        fingerprint, _ = fingerprint_of(dataset, request)
    directory = output or DIRECTORY.default(dataset.name, fingerprint)
    with DIRECTORY.reserved(directory, fingerprint):
        found = _fit(dataset, request, lanes, quiet)
        with status_line("writing report and model", shown=not quiet):
            command = _command(data, target, task, keep, request)
            files = write_files(found, dataset, directory, command=command)
    if json:
        write_json(found.to_dict() | {"files": files.to_dict()})
    elif not quiet:
        _tell(found, files)
    return 0


def _read(
    data: str,
    target: str | None,
    task: Literal["auto", "classification", "regression"],
    keep: list[str] | None,
    numbers: tuple[int, int, int, int],
) -> tuple[Request, Dataset]:
    from solvable.data import load
    from solvable.errors import InvalidParameter
    from solvable.learn.learning import Request, check_rows

    try:
        request = Request(*numbers)
    except InvalidParameter as error:
        raise InvalidParameter(f"--{error}") from error
    dataset = load(data, target=target, task=task, keep=tuple(keep or ()))
    check_rows(dataset)
    return request, dataset


def _fit(dataset: Dataset, request: Request, workers: int, quiet: bool) -> Learned:
    from solvable.cli.terminal import note, progress_bar
    from solvable.learn.learning import learn as learn_features

    if not quiet:
        note(
            f"{dataset.name}: {dataset.n_samples} rows, {request.folds} folds, "
            f"{workers} {'worker' if workers == 1 else 'workers'}"
        )
    with progress_bar(shown=not quiet) as show:
        return learn_features(dataset, request, workers=workers, progress=show)


def _command(
    data: str, target: str | None, task: str, keep: list[str] | None, request: Request
) -> str:
    """Words that repeat what was done; only what differs from the defaults is spelled out."""
    import shlex
    from dataclasses import fields

    words = ["solvable", "learn", data]
    words += ["--target", target] if target else []
    words += ["--task", task] if task != "auto" else []
    words += ["--keep", *keep] if keep else []
    for one in fields(request):
        value = getattr(request, one.name)
        words += [f"--{one.name}", str(value)] if value != one.default else []
    return shlex.join(words)


def _tell(found: Learned, files: LearnFiles) -> None:
    from rich.text import Text

    from solvable.cli.terminal import write
    from solvable.learn import words
    from solvable.learn.tables import method_table, outlook_table, signal_table

    def prose(*sentences: str, style: str = "") -> None:
        # As Text it is broken between words.
        write(*(Text(one, style=style) for one in sentences))

    prose(words.subject(found), style="bold")
    prose(*(f"- {one}" for one in found.treatments), style="dim")
    write("")
    prose("Which features can these rows teach?", style="bold")
    for layer in found.found:
        prose(words.signal_sentence(layer, found))
        if layer.directions:
            write("", signal_table(layer))
    write("")
    prose("How good are they on rows that were not seen?", style="bold")
    prose(words.headline(found), *words.comparison_sentences(found))
    write("", method_table(found), "")
    prose(*(f"{one.title}: {one.remark}" for one in found.methods if one.remark), style="dim")
    prose(found.protocol, style="dim")
    write("")
    prose("What would more data buy?", style="bold")
    prose(words.outlook_sentence(found))
    if found.outlook.expected:
        write("", outlook_table(found), "")
        prose(found.outlook.verdict, *found.outlook.notes, style="dim")
    write("", f"report   {files.report}", f"model    {files.model}")
    write(f"predict  solvable predict {files.model} NEW.csv")
