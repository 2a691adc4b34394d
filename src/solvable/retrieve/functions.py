"""Functions of Python: train retrievers, index documents, and search them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import joblib

from solvable.errors import InvalidParameter
from solvable.progress import Progress, reporter
from solvable.retrieve.files import DIRECTORY, write_files
from solvable.retrieve.index import DIRECTORY as INDEX_DIRECTORY
from solvable.retrieve.index import Hit, Index, build_index, read_index, write_index
from solvable.retrieve.request import TrainRequest, check_pipelines
from solvable.retrieve.results import Trained
from solvable.retrieve.runs import fingerprint_of, train_pipelines
from solvable.retrieve.seed_runs import Folder
from solvable.retrieve.sources import HELD_OUT, open_corpus
from solvable.retrieve.students import require_extra


def train_retriever(
    corpus: str | Path,
    /,
    *,
    pipelines: Sequence[str] = (),
    held_out: Sequence[str] | None = None,
    output: str | Path | None = None,
    workers: int | None = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> Trained:
    """Train late-interaction pipelines, and compare quality and cost: ``solvable retrieve train``.

    Parameters
    ----------
    corpus : path or str
        ``"docstrings"``, or a JSONL, CSV or Parquet file with columns query and document.
    pipelines : sequence of {"dense", "a", "b", "c"}
        Pipelines to train; default all.
    held_out : sequence of str, optional
        Domains that are only tested on; default sklearn and pandas for docstrings.
    output : path, optional
        Directory of report, numbers and models; a stopped run is resumed. Default: nothing is kept.
    workers : int, optional
        Local processes, one seed each; default one per core.
    progress : callable or bool, optional
        ``progress(done, total, seconds_left)`` in documents encoded for training. True
        shows a bar in a notebook or on a terminal, and a line a minute elsewhere.
    **options
        Fields of :class:`solvable.retrieve.TrainRequest`: student, seeds, sizes, batch, prompts.

    Returns
    -------
    Trained
        nDCG at 10 of each query, stage and seed; paired differences; spectra.

    Raises
    ------
    InvalidData, InvalidParameter
        If the corpus or an option cannot be used, or the extra ``retrieval`` is missing.
    StudyConflict
        If the output directory holds another run.

    Examples
    --------
    >>> from solvable.retrieve import train_retriever
    >>> train_retriever("pairs.jsonl", student="large")
    Traceback (most recent call last):
    ...
    solvable.errors.InvalidParameter: student is 'large'; allowed: static, tiny, minilm.
    """
    request, names = TrainRequest(**options), check_pipelines(tuple(pipelines))
    require_extra()
    held = open_corpus(corpus)
    outside = tuple(held_out) if held_out is not None else HELD_OUT.get(str(corpus), ())
    fingerprint = fingerprint_of(held, outside, names, request)
    made = None if output is None else Path(output).absolute()
    if made is not None:
        DIRECTORY.reserve(made, fingerprint)
    place = (
        Path(mkdtemp(prefix="solvable-")) if made is None else made.parent / f".{made.name}.part"
    )
    kept = Folder(place, fingerprint)
    try:
        lanes = workers or joblib.cpu_count()
        with reporter(progress, "documents") as report:
            found = train_pipelines(
                held, outside, names, request, place, workers=lanes, progress=report
            )
        if made is not None:
            write_files(found, kept, made, command="")
            kept.remove()
    finally:
        if made is None:
            kept.remove()
    return found


def index_documents(
    corpus: str | Path,
    model: str | Path,
    /,
    *,
    output: str | Path | None = None,
    progress: Progress | bool | None = None,
) -> Index:
    """Encode documents into a multi-vector index: ``solvable retrieve index``.

    Parameters
    ----------
    corpus : path or str
        ``"docstrings"``, or a JSONL, CSV or Parquet file with a column document.
    model : path
        Model file that :func:`train_retriever` wrote.
    output : path, optional
        Directory of the index. Default: it stays in memory.
    progress : callable or bool, optional
        ``progress(done, total, seconds_left)`` in documents. True shows a bar in a notebook
        or on a terminal, and a line a minute elsewhere.

    Returns
    -------
    Index
        Token vectors of all documents; ``index.search(queries)`` searches them.

    Raises
    ------
    InvalidData
        If the corpus or the model cannot be read.
    MemoryLimitExceeded
        If the token vectors do not fit into memory.

    Examples
    --------
    >>> from solvable.retrieve import index_documents
    >>> index_documents("missing.jsonl", "c.safetensors")
    Traceback (most recent call last):
    ...
    solvable.errors.InvalidData: 'missing.jsonl' is not a file; allowed: docstrings, or a file ...
    """
    held = open_corpus(corpus, queries=False)
    if output is not None:
        INDEX_DIRECTORY.reserve(Path(output), held.fingerprint)
    with reporter(progress, "documents") as report:
        made = build_index(held, Path(model), progress=report)
    if output is not None:
        write_index(made, Path(model), Path(output))
    return made


def search_documents(
    index: str | Path | Index,
    queries: str | Sequence[str],
    /,
    *,
    top: int = 10,
    exact: bool = False,
) -> list[list[Hit]]:
    """Find the best documents for queries: ``solvable retrieve search``.

    Parameters
    ----------
    index : path or Index
        Directory of an index, or the result of :func:`index_documents`.
    queries : str or sequence of str
        One query or several.
    top : int
        Number of documents per query, 1 to 1000.
    exact : bool
        Whether all documents are scored instead of the candidates.

    Returns
    -------
    list of list of Hit
        Identity, score and document of the best documents of each query, best first.

    Raises
    ------
    InvalidData, InvalidParameter
        If the index cannot be read, a query is empty, or ``top`` is out of range.

    Examples
    --------
    >>> from solvable.retrieve import search_documents
    >>> search_documents("index", "inverse of a matrix", top=0)
    Traceback (most recent call last):
    ...
    solvable.errors.InvalidParameter: top is 0; allowed: whole numbers from 1 to 1000.
    """
    asked = [queries] if isinstance(queries, str) else list(queries)
    if not 1 <= top <= 1000:
        raise InvalidParameter(f"top is {top}; allowed: whole numbers from 1 to 1000.")
    if not asked or not all(query.strip() for query in asked):
        raise InvalidParameter(
            "a query is empty or missing; allowed: at least one text with words."
        )
    held = index if isinstance(index, Index) else read_index(Path(index))
    return held.search(asked, top, exact=exact)
