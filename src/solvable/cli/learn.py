"""``solvable learn``: learn features from a table or images, and measure their error."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from solvable.cli.settings import Flag
from solvable.errors import InvalidParameter
from solvable.learn.request import Request

if TYPE_CHECKING:
    from solvable.data.dataset import Dataset, NewData
    from solvable.learn.results import Learned
    from solvable.learn.stored_fits import KeptFits

Columns = Annotated[list[str] | None, Parameter(consume_multiple=True, negative=())]


class Options(Request):
    """Request whose fields are options of the command; error messages name the option."""

    def __post_init__(self) -> None:
        try:
            super().__post_init__()
        except InvalidParameter as error:
            raise InvalidParameter(f"--{error}") from error


def learn(
    data: str,
    /,
    *,
    target: str | None = None,
    task: Annotated[
        Literal["auto", "classification", "regression"], Parameter(show_default=False)
    ] = "auto",
    keep: Columns = None,
    missing: Columns = None,
    numbers: Columns = None,
    categories: Columns = None,
    exclude: Columns = None,
    groups: str | None = None,
    time: str | None = None,
    test: str | None = None,
    image_size: str | None = None,
    colour: Annotated[Literal["auto", "grey", "rgb"], Parameter(show_default=False)] = "auto",
    options: Annotated[Options, Parameter(name="*")] = Options(),  # noqa: B008
    workers: int | None = None,
    output: Path | None = None,
    details: Flag = False,
    json: Flag = False,
    progress: Flag = False,
    quiet: Flag = False,
) -> int:
    """Learn features layer by layer, and measure their error on unseen rows.

    For example:
      solvable learn digits                      a minute or two
      solvable learn mnist-5k                    about five minutes on two cores
      solvable learn patients.csv --target risk
      solvable learn patients.csv --target risk --test later.csv
      solvable learn photos --image-size 32      one folder of PNG or JPEG per class
      solvable learn patients.csv --target age --task regression --output age

    DATA is a CSV, NPZ or Parquet file, a folder of these or of images, or one of
    digits, mnist-5k, breast-cancer, wine, iris, diabetes. Prints the method to
    use; the errors of learned features, a linear model, kernels, trees and random
    features on unseen rows; the number of directions that carry signal; the error
    expected with 2 and 4 times the rows. Nothing is trained by gradient descent.

    The output directory contains report.html, result.json, predictions.csv,
    directions.csv, figures/ and model.safetensors, which `solvable predict` uses.

    Parameters
    ----------
    data
        File, folder, or name of a data set.
    target
        Column to predict.
    task
        Kind of the target: class or number. [default: by its values]
    keep
        Columns to use although they look like row numbers.
    missing
        Further texts or numbers that denote a missing value: n.d. -999
    numbers
        Columns of numbers, whose words count as missing.
    categories
        Columns whose numbers are names of categories.
    exclude
        Columns that are not used.
    groups
        Column of persons, devices or days; rows with the same entry are tested together.
    time
        Column of dates or numbers; rows are predicted from earlier rows.
    test
        File of further rows with the target, on which the stored model is judged.
    image_size
        Size in pixels to which PNG and JPEG images are resized: 32, or 24x32
        (height x width). [default: not resized]
    colour
        Read images as grey or rgb. [default: grey unless a pixel has colour]
    workers
        Local processes. [default: one per core]
    output
        Directory. [default: solvable-runs/learn-NAME-FINGERPRINT]
    details
        Print also strengths of directions, differences and the protocol.
    json
        Print only the content of result.json.
    progress
        In a pipe or a log, write a line of progress to standard error each minute.
    quiet
        Print only errors (and the JSON).
    """
    from solvable.cli.terminal import repeated, status_line, write, write_json
    from solvable.study.dispatch import count_workers

    lanes = count_workers(workers)
    request = Request(**vars(options))
    with status_line("reading", shown=not quiet):
        # Imported under the status line, as the imports take longer than reading a small table.
        from solvable.answers.sections import terminal_parts
        from solvable.data import load, load_new
        from solvable.learn.answer import answer
        from solvable.learn.files import reserve, write_files
        from solvable.learn.judged_rows import check_test

        columns = {"keep": keep, "missing": missing, "numbers": numbers}
        columns |= {"categories": categories, "exclude": exclude}
        stated = {name: tuple(names or ()) for name, names in columns.items()}
        dataset = load(
            data,
            target=target,
            task=task,
            **stated,
            groups=groups,
            time=time,
            image_size=image_size,
            colour=colour,
        )
        tested = None
        if test is not None:
            tested = load_new(test, dataset.preparation)
            check_test(tested, dataset)
        directory, kept = reserve(dataset, request, output)
    found = _fit(dataset, request, lanes, quiet, progress, kept, tested)
    with status_line("writing report and model", shown=not quiet):
        changed = {
            option.name: getattr(request, option.name)
            for option in fields(request)
            if getattr(request, option.name) != option.default
        }
        more = {"groups": groups, "time": time, "test": test, "image_size": image_size}
        more |= {"colour": colour.replace("auto", "")}
        kind = task.replace("auto", "")
        command = repeated("learn", data, target=target, task=kind, **stated, **more, **changed)
        files = write_files(found, dataset, directory, command=command)
    kept.remove()
    if json:
        write_json(found.to_dict() | {"files": files.to_dict()})
    elif not quiet:
        model = str(files.model)
        shown = terminal_parts(answer(found, model=model), details=details)
        paths = f"report   {files.report}", f"model    {model}"
        write(*shown, "", *paths, f"predict  solvable predict {model} NEW.csv")
    return 0


def _fit(
    dataset: Dataset,
    request: Request,
    workers: int,
    quiet: bool,
    lines: bool,
    kept: KeptFits,
    test: NewData | None,
) -> Learned:
    from solvable.cli.terminal import note
    from solvable.learn.learning import learn as learn_features
    from solvable.progress import progress_bar

    if not quiet:
        note(
            f"{dataset.name}: {len(dataset.y)} rows, {request.folds} folds, "
            f"{workers} {'worker' if workers == 1 else 'workers'}"
        )
        if kept.folder.exists():
            note(f"resuming: completed fits of an earlier run are read from {kept.folder}")
    try:
        with progress_bar(shown=not quiet, lines=lines) as show:
            options: dict[str, Any] = {"workers": workers, "progress": show}
            options |= {"keeper": kept, "test": test}
            return learn_features(dataset, request, **options)
    except KeyboardInterrupt:
        if not quiet and kept.folder.exists():
            note(
                "stopped; completed fits are stored, and the same command resumes with the remaining fits"
            )
        raise
