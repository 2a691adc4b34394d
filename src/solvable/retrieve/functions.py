"""Functions of Python: train retrievers, index documents, and search them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from solvable.errors import InvalidParameter, unknown_choice
from solvable.paths import check_path
from solvable.plots.words import counted
from solvable.progress import Progress, reporter
from solvable.retrieve.build import build_index, change_index
from solvable.retrieve.corpus import Corpus
from solvable.retrieve.documents import Document, open_documents
from solvable.retrieve.index import DIRECTORY as INDEX_DIRECTORY
from solvable.retrieve.index import RANKINGS, Hit, Index, read_index, write_index
from solvable.retrieve.request import TrainRequest
from solvable.retrieve.results import Trained
from solvable.retrieve.runs import planned, run_plan


def train_retriever(
    corpus: str | Path,
    /,
    *,
    pipelines: Sequence[str] = (),
    held_out: Sequence[str] | None = None,
    output: str | Path | None = None,
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
        Directory of numbers and models; a stopped run is resumed. Default: nothing is kept.
    progress : callable or bool, optional
        ``progress(done, total, seconds_left)`` in documents encoded for training. True
        shows a bar in a notebook or on a terminal, and a line a minute elsewhere.
    **options
        Fields of :class:`solvable.retrieve.TrainRequest`: student, seeds, sizes, batch.

    Returns
    -------
    Trained
        nDCG at 10 of each query, stage and seed, and paired differences.

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
    plan = planned(corpus, pipelines, held_out, TrainRequest(**options))
    with reporter(progress, "documents") as report:
        made = None if output is None else Path(output)
        return run_plan(plan, made, progress=report)


def index_documents(
    corpus: str | Path | Corpus[Document],
    model: str | Path | None = None,
    /,
    *,
    output: str | Path | None = None,
    progress: Progress | bool | None = None,
) -> Index:
    """Split documents into passages and encode these: ``solvable retrieve index``.

    Parameters
    ----------
    corpus : path or str
        A folder of .md, .txt, .py and .rst files, a JSONL, CSV or Parquet file with a column
        document, or ``"docstrings"``.
    model : path, optional
        Folder of sentence-transformers, PyLate or ColBERT, or a file of :func:`train_retriever`.
        Default: MiniLM, without training.
    output : path, optional
        Directory of the index. Default: it stays in memory.
    progress : callable or bool, optional
        ``progress(done, total, seconds_left)`` in passages. True shows a bar in a notebook
        or on a terminal, and a line a minute elsewhere.

    Returns
    -------
    Index
        Passages with their vectors; ``index.search(queries)`` searches them.

    Raises
    ------
    InvalidData, InvalidParameter
        If the corpus or the model cannot be read.
    MemoryLimitExceeded
        If the vectors do not fit into memory.

    Examples
    --------
    >>> from solvable.retrieve import index_documents
    >>> index_documents("missing.jsonl")
    Traceback (most recent call last):
    ...
    solvable.errors.InvalidData: 'missing.jsonl' is not a file; allowed: docstrings, or a file ...
    """
    held = corpus if isinstance(corpus, Corpus) else open_documents(corpus)
    place = None if model is None else check_path(model, "the model")
    if output is not None:
        INDEX_DIRECTORY.reserve(Path(output), held.fingerprint)
    with reporter(progress, "passages") as report:
        made = build_index(held, place, progress=report)
    if output is not None:
        write_index(made, place, Path(output))
    return made


def update_index(
    index: str | Path,
    /,
    *,
    add: str | Path | None = None,
    delete: Sequence[str] = (),
    progress: Progress | bool | None = None,
) -> tuple[Index, list[str]]:
    """Add documents to a stored index and delete others; return it, and sentences on the changes."""
    if add is None and not delete:
        raise InvalidParameter("nothing to do; allowed: documents to add, ids to delete, or both.")
    new = Corpus[Document]("", ()) if add is None else open_documents(add)
    whole = add is not None and Path(add).is_dir()
    held = read_index(Path(index))
    with reporter(progress, "passages") as report:
        made, removed, added = change_index(
            held, new.pairs, delete, whole_files=whole, progress=report
        )
    # The copy of the model stays where it is.
    write_index(made, None, Path(index))
    return made, [f"{counted(removed, 'document')} removed, {added:,} added", *new.notes]


def search_documents(
    index: str | Path | Index,
    queries: str | Sequence[str],
    /,
    *,
    top: int = 10,
    exact: bool = False,
    ranking: str | None = None,
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
    ranking : {"model", "hybrid", "bm25"}, optional
        The score of the model, its sum with BM25, or BM25. Default: the one of the first two that
        found more when the index was built.

    Returns
    -------
    list of list of Hit
        The best documents of each query, best first: identity, score, document, title, best
        passage, and the places of matching words in the passage.

    Raises
    ------
    InvalidData, InvalidParameter
        If the index cannot be read, a query is empty, or an option is out of range.

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
    if ranking is not None and ranking not in RANKINGS:
        raise InvalidParameter(unknown_choice("ranking", ranking, RANKINGS))
    if not asked or not all(query.strip() for query in asked):
        raise InvalidParameter(
            "a query is empty or missing; allowed: at least one text with words."
        )
    held = index if isinstance(index, Index) else read_index(Path(index))
    return held.search(asked, top, exact=exact, ranking=ranking)
