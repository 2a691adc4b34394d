"""Measure searches of the documentation: nDCG@10 of each ranking, CPU time of indexing and of a search.

``retrieve_documentation.jsonl`` has 96 queries with the sections that answer them, as
``page#heading``: 48 in everyday words that avoid the terms of the pages, written before any ranking
was seen, then 48 in the words of the field, written when the means of the first 48 were known. Sections
that were not listed count as irrelevant, so the figures are lower bounds.

    python benchmarks/retrieve_documentation.py
    python benchmarks/retrieve_documentation.py --documents 10000
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from solvable.models.late_interaction.scoring import ndcg
from solvable.retrieve.build import build_index
from solvable.retrieve.corpus import Corpus
from solvable.retrieve.documents import Document, open_documents, read_folder
from solvable.retrieve.index import Index, passage_text
from solvable.retrieve.passages import standardised
from solvable.retrieve.students import minilm_folder

ROOT = Path(__file__).parent.parent


def sections() -> tuple[Corpus[Document], list[str]]:
    """Return the sections of all pages, and their names ``page#heading``."""
    found = read_folder(ROOT / "docs")
    rows, names = [], []
    for row in found.pairs:
        page, _, line = row.identity.rpartition(":")
        if page.endswith(".md"):
            heading = (ROOT / "docs" / page).read_text("utf-8").splitlines()[int(line) - 1]
            rows.append(row)
            names.append(f"{page}#{heading.lstrip('# ')}")
    return Corpus("docs", tuple(rows)), names


def scores(index: Index, query: str) -> dict[str, np.ndarray]:
    """Return the scores of all documents by each ranking."""
    (tokens,), texts = index.encoder.both([query], "query")
    everything = np.arange(len(index))
    parts = {
        "BM25": index.lexical.scores(query),
        "MaxSim": index._maxima(index.projected(tokens), everything)[0],
        "dense": index._of_documents(texts[0]),
    }
    for names in (
        ("MaxSim", "dense"), ("BM25", "MaxSim"), ("BM25", "dense"), ("BM25", "MaxSim", "dense")
    ):  # fmt: skip
        pool = index._pool([parts[name] for name in names], 10)
        total = np.full(len(index), -1e9)
        total[pool] = sum(standardised(parts[name][pool]) for name in names)
        parts[" + ".join(names)] = total
    return parts


def quality() -> Index:
    """Print nDCG@10 of each ranking, and the CPU time of indexing."""
    corpus, names = sections()
    rows = [json.loads(line) for line in Path(__file__).with_suffix(".jsonl").open("rb")]
    place = {name: number for number, name in enumerate(names)}
    missing = {name for row in rows for name in row["relevant"]} - set(place)
    if missing:
        print(f"left out, as no page has them any more: {', '.join(sorted(missing))}")
    rows = [row for row in rows if set(row["relevant"]) - missing]
    started = time.process_time()
    index = build_index(corpus)
    spent = time.process_time() - started
    relevant = np.zeros((len(rows), len(names)))
    for number, row in enumerate(rows):
        relevant[number, [place[name] for name in row["relevant"] if name in place]] = 1
    found = [scores(index, row["query"]) for row in rows]
    everyday = np.array([row["words"] == "everyday" for row in rows])
    print(f"{len(names)} sections, {len(index.arrays['spans'])} passages")
    print(f"held-out spans, nDCG@10: {index.content['ndcg']}")
    print(f"{'ranking':24} everyday  of the field  all (standard error)")
    for name in found[0]:
        gains = ndcg(np.stack([one[name] for one in found]), relevant)
        error = gains.std(ddof=1) / np.sqrt(len(gains))
        means = gains[everyday].mean(), gains[~everyday].mean(), gains.mean()
        print(f"{name:24} {means[0]:.3f}     {means[1]:.3f}         {means[2]:.3f} ({error:.3f})")
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(minilm_folder()), local_files_only=True)
    passages = [
        passage_text(row.title, row.text, span)
        for row, (first, end) in zip(corpus.pairs, pairwise(index.arrays["firsts"]), strict=True)
        for span in index.arrays["spans"][first:end]
    ]
    for what, texts in (
        ("the same passages", passages), ("the sections, cut at 256 tokens", index.documents)
    ):  # fmt: skip
        started = time.process_time()
        model.encode(texts, show_progress_bar=False)
        theirs = time.process_time() - started
        print(f"CPU of indexing {spent:.1f} s; sentence-transformers on {what}: {theirs:.1f} s")
    return index


def speed(documents: int) -> None:
    """Print the CPU time of a search in docstrings, with random words added to reach the number."""
    rows = list(open_documents("docstrings").pairs)
    rng = np.random.default_rng(0)
    while len(rows) < documents:
        one = rows[int(rng.integers(len(rows)))]
        words = rng.permutation(one.text.split())
        rows.append(Document(f"{one.identity}.{len(rows)}", " ".join(words), "", one.query))
    started = time.process_time()
    index = build_index(Corpus("docstrings", tuple(rows[:documents])))
    print(f"indexed {documents} documents in {time.process_time() - started:.0f} s of CPU")
    print(f"{len(index.arrays['spans'])} passages, {len(index.arrays['vectors'])} tokens")
    queries = [one.query for one in rows[: 20 * 50 : 50]]
    index.search(queries[:1])
    encoded = timed("encoding", queries, lambda query: index.encoder.both([query], "query"))
    asked = [
        (query, index.projected(tokens[0]), texts[0])
        for query, (tokens, texts) in zip(queries, encoded, strict=True)
    ]
    best = timed("search of an encoded query", asked, lambda one: index.best(*one, 10)[0])
    exact = timed("the same, exact", asked, lambda one: index.best(*one, 10, exact=True)[0])
    timed("encoding, search and marks", queries, lambda query: index.search([query]))
    shares = [len(set(a) & set(b)) / 10 for a, b in zip(best, exact, strict=True)]
    print(f"{np.mean(shares):.3f} of the exact ten best documents are found")


def timed(what: str, arguments: list[Any], function: Callable[[Any], Any]) -> list[Any]:
    """Return the results of a function, and print its CPU time."""
    started = time.process_time()
    found = [function(one) for one in arguments]
    print(f"{what}: {1000 * (time.process_time() - started) / len(arguments):.1f} ms of CPU")
    return found


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--documents", type=int, default=0)
    chosen = options.parse_args()
    if chosen.documents:
        speed(chosen.documents)
    else:
        quality()
