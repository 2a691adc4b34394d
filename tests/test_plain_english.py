"""No word or notation of the old style in docstrings, comments, messages and pages (CONTRIBUTING.md)."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import plain_english
import pytest

ROOT = Path(__file__).parent.parent
PLACES = ("src", "docs", "tests", "examples", "benchmarks", "README.md", "CONTRIBUTING.md")
ALLOWED = (Path(__file__).parent / "plain_english_allowed.txt").read_text("utf-8").splitlines()
GENERATED = {"generated", "gallery", "_build"}


@cache
def findings(path: Path) -> list[tuple[int, str, str]]:
    return list(plain_english.findings(path))


def test_old_style_does_not_come_back():
    found = []
    for path in plain_english.files([str(ROOT / place) for place in PLACES]):
        name = path.relative_to(ROOT).as_posix()
        if GENERATED.isdisjoint(path.parts):
            found += [f"{name}: {words}" for _, words, _ in findings(path)]
    assert sorted(set(found) - set(ALLOWED)) == []


def test_no_exception_is_left_over():
    found = set()
    for line in ALLOWED:
        name = line.partition(": ")[0]
        found |= {f"{name}: {words}" for _, words, _ in findings(ROOT / name)}
    assert sorted(set(ALLOWED) - found) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('"""What a learner finds."""', "What a learner finds."),
        ('"""Return it."""\n# the labels tell the sign', "tell"),
        ('"""Return it."""\n# an error of .5', ".5"),
        ('"""Return it."""\nprint("#a", b"#")  # an error of .5', ".5"),
        ('"""Return it."""\nprint(\n    "#a"  # an error of .5\n    "b"\n)', ".5"),
        ('"""Return it, as n/d^2."""', "d^2"),
        ('"""Return it."""\nraise ValueError("mend the file")', "mend"),
    ],
)
def test_old_style_is_found(tmp_path, text, words):
    path = tmp_path / "file.py"
    path.write_text(text, "utf-8")
    assert [finding[1] for finding in plain_english.findings(path)] == [words]


def test_code_and_formulas_are_left_alone(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("`d^2` and $x^2 .5$\n\n```\ntell .5\n```\n\n$$\nx^2\n$$\nIs it so?\n", "utf-8")
    assert list(plain_english.findings(path)) == []
