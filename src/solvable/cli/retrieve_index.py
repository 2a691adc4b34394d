"""``solvable retrieve index``, ``search`` and ``update``: an index of documents, and searches in it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from solvable.cli.settings import Flag

if TYPE_CHECKING:
    from solvable.retrieve.index import Index

Words = Annotated[list[str] | None, Parameter(consume_multiple=True, negative=())]


def index(
    corpus: str,
    /,
    *,
    model: Path | None = None,
    output: Path | None = None,
    json: Flag = False,
    progress: Flag = False,
    quiet: Flag = False,
) -> int:
    """Index documents for searches by meaning and by words; no training is needed.

    For example:
      solvable retrieve index notes
      solvable retrieve index documents.jsonl --output index
      solvable retrieve index documents.jsonl --model run/models/c.safetensors

    CORPUS is a folder of .md, .txt, .py and .rst files, whose sections are the documents,
    or a JSONL, CSV or Parquet file with a column document and optionally id and query, or
    docstrings. Documents are split into passages that the model reads whole. BM25 is
    added if it finds more, of the column query or of spans taken out of the documents.

    Parameters
    ----------
    corpus
        Folder, file, or docstrings.
    model
        Folder of a model of sentence-transformers, PyLate or ColBERT, or a file of
        `solvable retrieve train`. [default: MiniLM, untrained]
    output
        Directory. [default: solvable-runs/retrieve-index-NAME-FINGERPRINT]
    json
        Print the number of documents, the rankings and the path as JSON.
    progress
        In a pipe or a log, write a line of progress to standard error each minute.
    quiet
        Print only errors (and the JSON).
    """
    from solvable.progress import progress_bar
    from solvable.retrieve.documents import open_documents
    from solvable.retrieve.functions import index_documents
    from solvable.retrieve.index import DIRECTORY

    held = open_documents(corpus)
    directory = output or DIRECTORY.default(held.name, held.fingerprint)
    with progress_bar(shown=not quiet, unit="passages", lines=progress) as show:
        made = index_documents(held, model, output=directory, progress=show)
    _report(made, list(held.notes), directory, json, quiet)
    return 0


def update(
    index: Path,
    /,
    *,
    add: str | None = None,
    delete: Words = None,
    json: Flag = False,
    progress: Flag = False,
    quiet: Flag = False,
) -> int:
    """Add documents to an index, and delete others.

    For example:
      solvable retrieve update index --add new.jsonl
      solvable retrieve update index --add notes --delete draft.md other.md:12

    An added document replaces the one of its id; a file replaces all of its sections.

    Parameters
    ----------
    index
        Directory that `solvable retrieve index` wrote.
    add
        Folder or file of documents, as for `solvable retrieve index`.
    delete
        Ids of documents, or files with all their sections.
    json
        Print the number of documents, the rankings and the path as JSON.
    progress
        In a pipe or a log, write a line of progress to standard error each minute.
    quiet
        Print only errors (and the JSON).
    """
    from solvable.progress import progress_bar
    from solvable.retrieve.functions import update_index

    with progress_bar(shown=not quiet, unit="passages", lines=progress) as show:
        made, notes = update_index(index, add=add, delete=tuple(delete or ()), progress=show)
    _report(made, notes, index, json, quiet)
    return 0


def _report(made: Index, notes: list[str], directory: Path, json: bool, quiet: bool) -> None:
    import shlex

    from solvable.cli.terminal import write, write_json
    from solvable.plots.words import counted

    passages, tokens = len(made.arrays["spans"]), len(made.arrays["vectors"])
    keys = ("ranking", "ndcg")
    if json:
        summary = {"documents": len(made), "passages": passages, "tokens": tokens, "notes": notes}
        summary |= {key: made.content[key] for key in keys}
        write_json(summary | {"index": str(directory)})
    elif not quiet:
        write(
            f"{counted(len(made), 'document')}, {counted(passages, 'passage')}, "
            f"{counted(tokens, 'token vector')}",
            *(f"- {sentence}" for sentence in notes),
            made.answer(),
            f"search  solvable retrieve search {shlex.quote(str(directory))} 'YOUR QUERY'",
        )


def search(
    index: Path,
    queries: tuple[str, ...] = (),
    /,
    *,
    file: Path | None = None,
    top: int = 10,
    exact: Flag = False,
    ranking: str | None = None,
    json: Flag = False,
) -> int:
    """Find the best documents of an index for one or more queries.

    For example:
      solvable retrieve search index "inverse of a matrix"
      solvable retrieve search index --file queries.txt --top 3 --json

    Prints the score and id of each document, and its best passage. The words that match
    those of the query best, also by meaning, are bold on a terminal and between asterisks
    in a pipe. Scores of a sum compare documents of one query, and are no probabilities.

    Parameters
    ----------
    index
        Directory that `solvable retrieve index` wrote.
    queries
        Queries, each in quotes.
    file
        Text file with one query per line.
    top
        Number of documents per query, 1 to 1000.
    exact
        Score all documents instead of the candidates; always so below 2,500 documents.
    ranking
        model, hybrid (its sum with BM25) or bm25. [default: as the index states]
    json
        Print one JSON object with identities, scores, documents, passages and marks.
    """
    from rich.text import Text

    from solvable.cli.terminal import write, write_json
    from solvable.retrieve.functions import search_documents
    from solvable.retrieve.passages import snippet

    asked = [*queries, *(_lines(file) if file is not None else ())]
    found = search_documents(index, asked, top=top, exact=exact, ranking=ranking)
    if json:
        rows = [
            {"query": query, "hits": [hit._asdict() for hit in hits]}
            for query, hits in zip(asked, found, strict=True)
        ]
        write_json({"queries": rows})
        return 0
    for query, hits in zip(asked, found, strict=True):
        if len(asked) > 1:
            write(f"# {query}")
        for hit in hits:
            text, marks = snippet(hit.passage, hit.marks)
            shown = Text(text)
            for first, end in reversed(marks):
                if sys.stdout.isatty():
                    shown.stylize("bold", first, end)
                else:
                    shown = shown[:first] + "*" + shown[first:end] + "*" + shown[end:]
            write(f"{hit.score:7.3f}  {hit.identity}  {hit.title}")
            write(shown if sys.stdout.isatty() else shown.plain)
    return 0


def _lines(path: Path) -> list[str]:
    """Return the lines of a file that are not empty."""
    from solvable.errors import InvalidData

    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidData(f"{path} cannot be read as UTF-8 text ({error}).") from None
    return [line.strip() for line in text.splitlines() if line.strip()]
