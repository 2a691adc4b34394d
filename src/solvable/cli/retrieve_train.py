"""``solvable retrieve train``: train pipelines of phases, and compare them."""

from __future__ import annotations

import shlex
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from solvable.cli.settings import Flag
from solvable.errors import InvalidParameter
from solvable.retrieve.request import TrainRequest, check_pipelines

if TYPE_CHECKING:
    from solvable.retrieve.corpus import Corpus
    from solvable.retrieve.results import Trained
    from solvable.retrieve.seed_runs import Folder

Words = Annotated[list[str] | None, Parameter(consume_multiple=True, negative=())]


class Options(TrainRequest):
    """Request whose fields are options of the command; error messages name the option."""

    def __post_init__(self) -> None:
        try:
            super().__post_init__()
        except InvalidParameter as error:
            raise InvalidParameter(f"--{error}") from error


def train(
    corpus: str,
    /,
    *,
    pipeline: Words = None,
    held_out: Words = None,
    options: Annotated[Options, Parameter(name="*")] = Options(),  # noqa: B008
    workers: int | None = None,
    output: Path | None = None,
    json: Flag = False,
    progress: Flag = False,
    quiet: Flag = False,
) -> int:
    """Train late-interaction pipelines on a corpus, and compare their quality and cost.

    For example:
      solvable retrieve train docstrings --student static
      solvable retrieve train docstrings --pipeline b c --student tiny --seeds 3
      solvable retrieve train pairs.jsonl --held-out medicine --output run

    CORPUS is docstrings, or a JSONL, CSV or Parquet file with the columns query and
    document, and optionally id, domain, negatives and scores. Each pipeline has an
    unsupervised, a supervised and a distillation phase. The pipeline "dense" has one
    vector per text in all phases; a changes to one vector per token at distillation,
    b at the supervised phase, and c has one vector per token in all phases. Prints
    nDCG@10 with paired intervals, the number of documents encoded for training, and
    which differences of pipelines are shown.

    The output directory contains report.html, result.json, figures/ and one model
    per pipeline in models/. The same command resumes a stopped run.

    Parameters
    ----------
    corpus
        Name or file.
    pipeline
        Pipelines: dense, a, b, c. [default: all]
    held_out
        Domains that are only tested on. [default: pandas sklearn for docstrings]
    workers
        Local processes, one seed each. [default: one per core]
    output
        Directory. [default: solvable-runs/retrieve-NAME-FINGERPRINT]
    json
        Print only the content of result.json.
    progress
        In a pipe or a log, write a line of progress to standard error each minute.
    quiet
        Print only errors (and the JSON).
    """
    from solvable.cli.terminal import status_line, write, write_json
    from solvable.study.dispatch import count_workers

    lanes = count_workers(workers)
    names = check_pipelines(tuple(pipeline or ()))
    request = TrainRequest(**vars(options))
    with status_line("reading", shown=not quiet):
        from solvable.retrieve.files import DIRECTORY, quality_table, write_files
        from solvable.retrieve.runs import fingerprint_of
        from solvable.retrieve.seed_runs import Folder
        from solvable.retrieve.sources import HELD_OUT, open_corpus
        from solvable.retrieve.students import require_extra

        require_extra()
        held = open_corpus(corpus)
        outside = tuple(held_out) if held_out is not None else HELD_OUT.get(corpus, ())
        fingerprint = fingerprint_of(held, outside, names, request)
        directory = output or DIRECTORY.default(held.name, fingerprint)
        DIRECTORY.reserve(directory, fingerprint)
    place = directory.absolute()
    kept = Folder(place.parent / f".{place.name}.part", fingerprint)
    found = _train(held, outside, names, request, kept, lanes, quiet, progress)
    with status_line("writing report and models", shown=not quiet):
        command = _command(corpus, pipeline, held_out, request)
        files = write_files(found, kept, directory, command=command)
    kept.remove()
    if json:
        write_json(found.to_dict() | {"files": files.to_dict()})
    elif not quiet:
        sentences = [f"- {one.sentence()}" for one in found.differences()]
        best = files.models[found.best]
        write(found.answer(), "", quality_table(found), "", *sentences, "")
        write(f"report  {files.report}", f"index   solvable retrieve index CORPUS --model {best}")
    return 0


def _train(
    corpus: Corpus,
    held_out: tuple[str, ...],
    pipelines: tuple[str, ...],
    request: TrainRequest,
    kept: Folder,
    workers: int,
    quiet: bool,
    lines: bool,
) -> Trained:
    from solvable.cli.terminal import note
    from solvable.plots.words import counted
    from solvable.progress import progress_bar
    from solvable.retrieve.runs import train_pipelines

    if not quiet:
        lanes = min(workers, request.seeds)
        sizes = (len(corpus.pairs), "pair"), (request.seeds, "seed"), (lanes, "worker")
        note(f"{corpus.name}: {', '.join(counted(*one) for one in sizes)}")
        for sentence in corpus.notes:
            note(f"- {sentence}")
        if kept.path.exists():
            note(f"resuming: finished stages of an earlier run are read from {kept.path}")
    arguments: tuple[Any, ...] = (corpus, held_out, pipelines, request, kept.path)
    try:
        with progress_bar(shown=not quiet, unit="documents", lines=lines) as show:
            return train_pipelines(*arguments, workers=workers, progress=show)
    except KeyboardInterrupt:
        if not quiet and kept.path.exists():
            note("stopped; finished stages are stored, and the same command resumes")
        raise


def _command(
    corpus: str, pipeline: list[str] | None, held_out: list[str] | None, request: TrainRequest
) -> str:
    """Return the command line that repeats the run, without options at their defaults."""
    words = ["solvable", "retrieve", "train", corpus]
    words += ["--pipeline", *pipeline] if pipeline else []
    words += ["--held-out", *held_out] if held_out else []
    for option in fields(request):
        value = getattr(request, option.name)
        words += [f"--{option.name}", str(value)] if value != option.default else []
    return shlex.join(words)
