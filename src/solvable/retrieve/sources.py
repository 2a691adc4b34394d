"""Corpora by name or file, and the domains that are held out by default."""

from __future__ import annotations

from pathlib import Path

from solvable.retrieve.corpus import Corpus, deduplicated, read_corpus

HELD_OUT = {"docstrings": ("sklearn", "pandas")}
"""Domains of named corpora that are not trained on, so that they test transfer."""


def open_corpus(source: str | Path, *, queries: bool = True) -> Corpus:
    """Read a corpus, and remove near duplicates if it is for training."""
    corpus = read_corpus(source, queries=queries)
    return deduplicated(corpus) if queries else corpus
