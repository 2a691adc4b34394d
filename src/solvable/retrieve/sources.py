"""Corpora by name or file: pairs from docstrings, and the domains that are held out by default."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

from solvable.data.docstring_corpus import docstrings
from solvable.paths import printable
from solvable.retrieve.corpus import Corpus, Pair, deduplicated, read_corpus

PACKAGES = ("numpy", "scipy", "sympy", "networkx", "torch", "pandas", "sklearn")
"""Packages whose docstrings are the corpus ``docstrings``, if they are installed."""

HELD_OUT = {"docstrings": ("pandas", "sklearn")}
"""Domains of named corpora that are not trained on, so that they test transfer."""

_ROLES = re.compile(r":[\w:+-]+:`~?([^`<]*?)(?:\s*<[^>]*>)?`")
_MARKS = re.compile(r"[`*|]{1,3}([^`*|\n]+)[`*|]{1,3}")
_LINES = re.compile(r"^\s*(?:[-=~^]{3,}|\.\. .*|>>>.*)\s*$", re.MULTILINE)
_END = re.compile(r"^\s*(?:Examples?|References|See Also)\s*:?\s*$", re.MULTILINE)


def open_corpus(source: str | Path, *, queries: bool = True) -> Corpus:
    """Read a corpus, and remove near duplicates if it is for training."""
    if str(source) == "docstrings":
        return deduplicated(docstring_pairs())
    corpus = read_corpus(source, queries=queries)
    return deduplicated(corpus) if queries else corpus


def docstring_pairs(packages: tuple[str, ...] = PACKAGES) -> Corpus:
    """Return pairs of the first paragraph and the rest of docstrings; domains are packages."""
    installed = [name for name in packages if find_spec(name) is not None]
    pairs = []
    for record in docstrings(installed, shortest=60):
        query = plain_words(record.first_line)
        words = plain_words(_END.split(record.body, maxsplit=1)[0]).split()
        signature = re.match(r"[\w.]+\s*\(", query)
        if 4 <= len(query.split()) <= 30 and len(words) >= 20 and not signature:
            identity = f"{record.module}.{record.name}"
            pairs.append(Pair(identity, query, " ".join(words[:150]), record.package))
    # Overloads and conditional definitions share a name.
    pairs = list({pair.identity: pair for pair in pairs}.values())
    return Corpus("docstrings", tuple(pairs), (f"docstrings of {', '.join(installed)}",))


def plain_words(text: str) -> str:
    """Return a text of reStructuredText without its markup, on one line."""
    text = _MARKS.sub(r"\1", _ROLES.sub(r"\1", _LINES.sub("", text)))
    return " ".join(printable(text).split())
