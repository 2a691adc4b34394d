"""``solvable retrieve train``: train pipelines of phases, and compare them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from solvable.cli.retrieve_index import Words
from solvable.cli.settings import Flag
from solvable.errors import InvalidParameter
from solvable.retrieve.request import TrainRequest, check_pipelines


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

    The output directory contains result.json and one model per pipeline in models/.
    The same command resumes a stopped run after its last finished phase.

    Parameters
    ----------
    corpus
        Name or file.
    pipeline
        Pipelines: dense, a, b, c. [default: all]
    held_out
        Domains that are only tested on. [default: pandas sklearn for docstrings]
    output
        Directory. [default: solvable-runs/retrieve-NAME-FINGERPRINT]
    json
        Print only the content of result.json.
    progress
        In a pipe or a log, write a line of progress to standard error each minute.
    quiet
        Print only errors (and the JSON).
    """
    from solvable.cli.terminal import note, status_line, write, write_json
    from solvable.plots.words import counted
    from solvable.progress import progress_bar

    request = TrainRequest(**vars(options))
    check_pipelines(tuple(pipeline or ()))
    with status_line("reading", shown=not quiet):
        from solvable.retrieve.results import DIRECTORY, MODELS, quality_table
        from solvable.retrieve.runs import folder_of, planned, run_plan

        plan = planned(corpus, pipeline or (), held_out, request)
        directory = output or DIRECTORY.default(plan.corpus.name, plan.fingerprint)
        DIRECTORY.reserve(directory, plan.fingerprint)
    kept = folder_of(plan, directory).path
    if not quiet:
        sizes = (len(plan.corpus.pairs), "pair"), (request.seeds, "seed")
        note(f"{plan.corpus.name}: {', '.join(counted(*one) for one in sizes)}")
        for sentence in plan.corpus.notes:
            note(f"- {sentence}")
        if kept.exists():
            note(f"resuming: finished stages of an earlier run are read from {kept}")
    try:
        with progress_bar(shown=not quiet, unit="documents", lines=progress) as show:
            found = run_plan(plan, directory, progress=show)
    except KeyboardInterrupt:
        if not quiet and kept.exists():
            note("stopped; finished stages are stored, and the same command resumes")
        raise
    best = directory / MODELS / f"{found.best}.safetensors"
    if json:
        write_json(found.to_dict() | {"directory": str(directory), "best_model": str(best)})
    elif not quiet:
        sentences = [f"- {one.sentence()}" for one in found.differences()]
        write(found.answer(), "", quality_table(found), "", *sentences, "")
        write(f"index   solvable retrieve index CORPUS --model {best}")
    return 0
