"""``solvable retrieve index``: encode the documents of a corpus."""

from __future__ import annotations

from pathlib import Path

from solvable.cli.settings import Flag


def index(
    corpus: str,
    /,
    *,
    model: Path,
    output: Path | None = None,
    json: Flag = False,
    progress: Flag = False,
    quiet: Flag = False,
) -> int:
    """Encode the documents of a corpus into a multi-vector index.

    For example:
      solvable retrieve index documents.jsonl --model run/models/c.safetensors

    CORPUS is docstrings, or a JSONL, CSV or Parquet file with a column document and
    optionally id. The index is a directory with a copy of the model. The number of
    candidates of a search is chosen so that they contain at least 99 % of the ten
    best documents by exact MaxSim, on queries of the corpus.

    Parameters
    ----------
    corpus
        Name or file.
    model
        Model file that `solvable retrieve train` wrote.
    output
        Directory. [default: solvable-runs/retrieve-index-NAME-FINGERPRINT]
    json
        Print the number of documents, the recall and the path as JSON.
    progress
        In a pipe or a log, write a line of progress to standard error each minute.
    quiet
        Print only errors (and the JSON).
    """
    from solvable.cli.terminal import write, write_json
    from solvable.progress import progress_bar
    from solvable.retrieve.index import DIRECTORY, build_index, write_index
    from solvable.retrieve.sources import open_corpus

    held = open_corpus(corpus, queries=False)
    directory = output or DIRECTORY.default(held.name, held.fingerprint)
    DIRECTORY.reserve(directory, held.fingerprint)
    with progress_bar(shown=not quiet, unit="documents", lines=progress) as show:
        made = build_index(held, model, progress=show)
    write_index(made, model, directory)
    summary = {
        "documents": len(made),
        "tokens": len(made.arrays["vectors"]),
        "candidates": made.content["candidates"],
        "recall": made.content["recall"],
        "index": str(directory),
    }
    if json:
        write_json(summary)
    elif not quiet:
        write(
            f"{len(made):,} documents, {summary['tokens']:,} token vectors, "
            f"{summary['candidates']:,} candidates per search (recall {summary['recall']:.3f})",
            *(f"- {sentence}" for sentence in held.notes),
            f"search  solvable retrieve search {directory} 'YOUR QUERY'",
        )
    return 0
