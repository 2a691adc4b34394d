from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

WORDS = """matrix vector inverse product sum graph node edge path tree random sample mean variance
table column row index file read write parse text number string list sort search cache memory process
thread signal filter window plot figure colour axis label scale""".split()  # noqa: SIM905


def rows(count: int, seed: int = 0) -> list[dict[str, object]]:
    """Return rows whose query repeats words of its document."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(count):
        words = rng.choice(WORDS, 24)
        query = " ".join([*rng.choice(words, 5, replace=False), f"item{number}"])
        document = " ".join([*words, f"item{number}"])
        domain = ("left", "right", "outside")[number % 3]
        found.append({"id": f"d{number}", "query": query, "document": document, "domain": domain})
    return found


@pytest.fixture
def corpus_file(tmp_path: Path) -> Callable[..., Path]:
    """Return a function that writes rows as JSONL, and returns the path."""

    def write(content: list[dict[str, object]] | int = 120, name: str = "pairs.jsonl") -> Path:
        held = rows(content) if isinstance(content, int) else content
        path = tmp_path / name
        path.write_text("".join(json.dumps(row) + "\n" for row in held), "utf-8")
        return path

    return write
