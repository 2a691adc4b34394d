"""Corpora of (query, document) pairs: reading, checks, and removal of near duplicates."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from solvable.data.parquet import check_texts, open_parquet, text_bytes
from solvable.errors import InvalidData, InvalidParameter, MemoryLimitExceeded, quoted
from solvable.memory import available_bytes, gigabytes
from solvable.paths import check_path, printable
from solvable.plots.words import counted

ENDINGS = (".jsonl", ".csv", ".parquet")  # file endings of corpora

COLUMNS = ("id", "query", "document", "domain", "negatives", "scores")
"""Columns that are read; others are ignored. Only ``document`` is required for an index."""


Rows = Generator[tuple[int, Mapping[str, Any]], None, None]


class Pair(NamedTuple):
    """A query with its relevant document."""

    identity: str
    query: str
    document: str
    domain: str = ""
    negatives: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()  # teacher scores of the document, then of the negatives


Row = TypeVar("Row", bound=tuple[Any, ...])


@dataclass(frozen=True)
class Corpus(Generic[Row]):
    """Pairs or documents, with the sentences that state how they were changed while they were read."""

    name: str
    pairs: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def fingerprint(self) -> str:
        """Return the SHA-256 of all pairs in their order."""
        summed = hashlib.sha256()
        for pair in self.pairs:
            summed.update(json.dumps(pair, ensure_ascii=True).encode())
        return summed.hexdigest()


def read_corpus(source: str | Path, *, queries: bool = True) -> Corpus[Pair]:
    """Read a corpus file; without ``queries``, documents alone are enough."""
    path = check_path(source, "the corpus")
    if not path.is_file():
        raise InvalidData(
            f"{quoted(str(source))} is not a file; allowed: docstrings, or a file that ends in "
            f"{', '.join(ENDINGS)}" + ("." if queries else ", or a folder of texts.")
        )
    if path.suffix.lower() not in ENDINGS:
        allowed = ", ".join(ENDINGS) + ", or a folder of texts" * (not queries)
        raise InvalidData(f"{path.name} ends in {path.suffix!r}; allowed: {allowed}.")
    # Texts of Python need up to 4 bytes per character, and a row has about 500 bytes of objects;
    # Parquet files are compressed, typically to a third.
    check_memory(path.name, path.stat().st_size * (12 if path.suffix.lower() == ".parquet" else 4))
    read = {".jsonl": _jsonl, ".csv": _csv, ".parquet": _parquet}[path.suffix.lower()]
    pairs, changed, empty = [], 0, 0
    with closing(read(path)) as rows:
        for number, row in rows:
            pair, differs = _pair(row, f"{path.name}, row {number}", number, queries)
            changed += differs
            if pair.document:
                pairs.append(pair)
            else:
                empty += 1
    if not pairs:
        raise InvalidData(f"{path.name} has no rows with text; allowed: at least one document.")
    _check_identities(pairs, path.name)
    notes = []
    if changed:
        notes.append(f"control characters were removed from {counted(changed, 'row')}")
    if empty:
        notes.append(f"{counted(empty, 'empty document')} skipped")
    return Corpus(path.stem, tuple(pairs), tuple(notes))


def deduplicated(corpus: Corpus[Pair]) -> Corpus[Pair]:
    """Keep the first of pairs with the same normalised query or beginning of the document."""
    # In-batch negatives assume that no other document of a batch answers the query.
    kept, queries, beginnings = [], set(), set()
    for pair in corpus.pairs:
        query = re.sub(r"\W+", " ", pair.query.lower()).strip()
        beginning = pair.document[:150].lower()
        if query in queries or beginning in beginnings:
            continue
        queries.add(query)
        beginnings.add(beginning)
        kept.append(pair)
    dropped = len(corpus.pairs) - len(kept)
    notes = [f"{counted(dropped, 'near duplicate')} removed"] if dropped else []
    return Corpus(corpus.name, tuple(kept), (*corpus.notes, *notes))


def check_memory(name: str, needed: float) -> None:
    """Refuse a corpus that needs more memory than is free."""
    if needed > (free := available_bytes()):
        raise MemoryLimitExceeded(
            f"{name} needs about {gigabytes(needed)} of memory, and {gigabytes(free)} are "
            "free. Split the corpus, or use a machine with more memory."
        )


def _pair(row: Mapping[str, Any], place: str, number: int, queries: bool) -> tuple[Pair, bool]:
    """Return the checked pair of a row, and whether control characters were removed."""
    texts = {}
    for name in ("query", "document", "domain"):
        value = row.get(name)
        if value is not None and not isinstance(value, str):
            raise InvalidData(f"{place}: {name} is {quoted(value)}; allowed: text.")
        texts[name] = value or ""
    cleaned = {name: " ".join(printable(text).split()) for name, text in texts.items()}
    if "document" not in row:
        seen = ", ".join(map(quoted, list(row)[:10])) or "none"
        raise InvalidData(f"{place}, has no key 'document'; its keys are {seen}.")
    if queries and not cleaned["document"]:
        raise InvalidData(f"{place}: the document is empty; each query needs a relevant document.")
    if queries and not cleaned["query"]:
        raise InvalidData(f"{place}: the query is empty; allowed: text in each row of `query`.")
    negatives = tuple(_list(row.get("negatives"), str, "negatives", place))
    if not all(text.strip() for text in negatives):
        raise InvalidData(f"{place}: a negative is empty; allowed: lists of texts.")
    scores = tuple(map(float, _list(row.get("scores"), (int, float), "scores", place)))
    if scores and len(scores) != 1 + len(negatives):
        raise InvalidData(
            f"{place}: {len(scores)} scores for {1 + len(negatives)} documents; allowed: one score "
            "for the document and one for each negative."
        )
    identity = str(row.get("id") or number)
    differs = any(printable(text) != text for text in texts.values())
    query, document, domain = cleaned["query"], cleaned["document"], cleaned["domain"]
    return Pair(identity, query, document, domain, negatives, scores), differs


def _list(value: Any, kind: Any, name: str, place: str) -> Sequence[Any]:
    """Return a list from a cell, which in CSV files is written as JSON."""
    if value in (None, ""):
        return ()
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
    held = isinstance(value, list) and all(
        isinstance(part, kind) and not isinstance(part, bool) for part in value
    )
    finite = held and all(abs(part) < float("inf") for part in value if not isinstance(part, str))
    if not finite:
        what = "texts" if kind is str else "finite numbers"
        raise InvalidData(f"{place}: {name} is not a list; allowed: a list of {what}, as in JSON.")
    return value


def _check_identities(pairs: Sequence[Pair], name: str) -> None:
    seen: set[str] = set()
    for pair in pairs:
        if pair.identity in seen:
            raise InvalidData(
                f"{name}: the id {quoted(pair.identity)} occurs twice; allowed: each id once."
            )
        seen.add(pair.identity)


def _jsonl(path: Path) -> Rows:
    with path.open(encoding="utf-8-sig") as stream:
        lines = enumerate(_decoded(stream, path), 1)
        for number, line in lines:
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                message = f"{path.name}, row {number}, is not JSON ({str(error)[:100]})."
                raise InvalidData(f"{message} Write one object per line.") from None
            if not isinstance(row, dict):
                raise InvalidData(
                    f"{path.name}, row {number}, is {quoted(row)[:80]}; allowed: an object with "
                    f"the keys {', '.join(COLUMNS)}."
                )
            yield number, row


def _csv(path: Path) -> Rows:
    before = csv.field_size_limit(1 << 30)
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            reader = csv.DictReader(_decoded((line.replace("\0", "") for line in stream), path))
            _check_columns(reader.fieldnames or (), path)
            yield from enumerate(reader, 2)
    except csv.Error as error:
        raise InvalidData(f"{path.name} is not a CSV file ({error}). Correct it.") from None
    finally:
        csv.field_size_limit(before)


def _parquet(path: Path) -> Rows:
    from pyarrow import ArrowException

    try:
        with open_parquet(path) as file:
            held = [name for name in COLUMNS if name in file.schema_arrow.names]
            _check_columns(held, path)
            first, size = 1, 0
            for batch in file.iter_batches(batch_size=1000, columns=held):
                size += 500 * len(batch) + sum(text_bytes(column) for column in batch.columns)
                check_texts(size, path)
                yield from enumerate(batch.to_pylist(), first)
                first += len(batch)
    except (ArrowException, OSError, UnicodeDecodeError) as error:
        why = str(error).splitlines()[0][:150]
        raise InvalidData(f"{path.name} is not a Parquet file ({why}). Write it again.") from None


def _check_columns(names: Iterable[str], path: Path) -> None:
    if "document" not in names:
        raise InvalidData(
            f"{path.name} has no column 'document'; allowed: the columns {', '.join(COLUMNS)}."
        )


def _decoded(lines: Iterable[str], path: Path) -> Iterator[str]:
    try:
        yield from lines
    except UnicodeDecodeError as error:
        raise InvalidData(f"{path.name} is not UTF-8 text ({error.reason}). Convert it.") from None


class Split(NamedTuple):
    """Training pairs, and the test queries in domain and from domains outside training."""

    training: tuple[Pair, ...]
    inside: tuple[Pair, ...]
    outside: tuple[Pair, ...]


def split(corpus: Corpus[Pair], held_out: Sequence[str], tested: int) -> Split:
    """Split off test pairs by a hash of their text, the same ones for every seed."""
    domains = list(dict.fromkeys(pair.domain for pair in corpus.pairs))
    unknown = [name for name in held_out if name not in domains]
    if unknown:
        raise InvalidParameter(
            f"held-out is {quoted(unknown[0])}; allowed: domains of the corpus, which are "
            f"{', '.join(domains[:20]) or 'none'}."
        )
    order = sorted(corpus.pairs, key=lambda pair: hashlib.sha256(repr(pair).encode()).digest())
    outside = [pair for pair in order if pair.domain in held_out]
    within = [pair for pair in order if pair.domain not in held_out]
    count = min(tested, len(within) // 5)
    if count < 10:
        raise InvalidData(
            f"{corpus.name} has {len(within)} pairs for training and test; allowed: at least 50."
        )
    return Split(tuple(within[count:]), tuple(within[:count]), tuple(outside))
