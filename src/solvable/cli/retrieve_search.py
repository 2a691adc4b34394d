"""``solvable retrieve search``: the best documents of an index for queries."""

from __future__ import annotations

from pathlib import Path

from solvable.cli.settings import Flag


def search(
    index: Path,
    queries: tuple[str, ...] = (),
    /,
    *,
    file: Path | None = None,
    top: int = 10,
    exact: Flag = False,
    json: Flag = False,
) -> int:
    """Find the best documents of an index for one or more queries.

    For example:
      solvable retrieve search index "inverse of a matrix"
      solvable retrieve search index --file queries.txt --top 3 --json

    Documents are ranked by exact MaxSim, among candidates that share the tokens
    nearest to those of the query.

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
        Score all documents instead of the candidates.
    json
        Print one JSON object with identities, scores and documents.
    """
    from solvable.cli.terminal import write, write_json
    from solvable.retrieve.functions import search_documents

    asked = [*queries, *(_lines(file) if file is not None else ())]
    found = search_documents(index, asked, top=top, exact=exact)
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
        shown = 160  # largest number of characters of a document
        write(
            *(
                f"{hit.score:7.3f}  {hit.identity}  {hit.document[:shown]}"
                + "…" * (len(hit.document) > shown)
                for hit in hits
            )
        )
    return 0


def _lines(path: Path) -> list[str]:
    """Return the lines of a file that are not empty."""
    from solvable.errors import InvalidData

    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidData(f"{path} cannot be read as UTF-8 text ({error}).") from None
    return [line.strip() for line in text.splitlines() if line.strip()]
