"""Titles of axes follow the rules of CONTRIBUTING.md in all systems."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import solvable
from solvable.frame import registry
from solvable.frame.curves import curves_of
from solvable.frame.panels import Panel
from solvable.frame.points import Point
from solvable.frame.spectrum import Spectrum
from solvable.frame.system import System

SOURCE = Path(solvable.__file__).parent

# Places of the titles among the arguments of each description of a figure.
PLACES = {"Figure": (2, 3), "Panel": (2,), "Spectrum": (2,), "Axis": (1,)}
KEYWORDS = ("x_label", "y_label")

SPELT_OUT = re.compile(r"sqrt|kappa|\bchi\b|\beta\b|alpha|lambda|\^|\w - \w|<=|>=")
WORDS_FOR_SIGNS = re.compile(r"\b(over|times|relative to|in units of)\b")
PER_SIZE = re.compile(r"(samples|measurements|strings) (per|/)")
TIGHT_RATIO = re.compile(r"[a-z]{3}/\w|\w/[a-z]{3}")
LOOSE_RATIO = re.compile(r"\w / \w")


def stated_titles() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each title that stands in the source."""
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            given = [node.args[i] for i in PLACES.get(name, ()) if i < len(node.args)]
            given += [word.value for word in node.keywords if word.arg in KEYWORDS]
            for value in given:
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    yield f"{path.relative_to(SOURCE)}:{value.lineno}", value.value


def system_titles() -> Iterator[tuple[str, str]]:
    """Yield the titles of all installed systems."""
    for listing in registry.available():
        system = registry.load(listing.name)
        if system.axis is not None:
            yield listing.name, system.axis.label
        for panel in system.panels:
            if isinstance(panel, Panel):
                yield f"{listing.name} {panel.name}", panel.y_label
                for title in horizontal_titles(system, panel):
                    yield f"{listing.name} {panel.name}", title
                if panel.along is not None and not isinstance(panel.along, str):
                    yield f"{listing.name} {panel.name}", panel.along.label
            elif isinstance(panel, Spectrum):
                yield f"{listing.name} {panel.name}", panel.x_label


def horizontal_titles(system: System, panel: Panel) -> set[str]:
    """Return the titles that a panel gives the first curve of each preset."""
    if not callable(panel.x_label):
        return {panel.x_label}
    found = set()
    for preset in system.presets.values():
        setting = system.parameters(**{name: values[0] for name, values in preset.grid.items()})
        point = Point(setting.model_dump(), [], {}, setting)
        (curve,) = curves_of([point], system.axis, system.along)
        found.add(panel.x_label(curve))
    assert len(found) > 1, f"{panel.name}: this label need not be a function"
    return found


def faults(title: str) -> list[str]:
    """Return the rules that a title breaks."""
    words = re.sub(r"\([^()]*\)", "", title)
    outside = "".join(re.split(r"'[^']*'", words))  # names of methods may hold a comma
    found = []
    if title and not (title[0].islower() or title.startswith("nDCG")):
        found.append("begins with a capital")
    if len(title) > 60:
        found.append("more than 60 characters")
    if title.count("(") != title.count(")"):
        found.append("parentheses are not closed")
    if SPELT_OUT.search(title):
        found.append("a symbol is spelt out")
    if WORDS_FOR_SIGNS.search(title):
        found.append("a word replaces / or ×")
    if "=" in title or "," in outside:
        found.append("a definition stands outside parentheses")
    if PER_SIZE.search(title):
        found.append("not called a sample ratio")
    if TIGHT_RATIO.search(outside) or LOOSE_RATIO.fullmatch(outside):
        found.append("blanks around / do not fit words or symbols")
    if title.startswith("rank of the"):
        found.append("a position is called a rank")
    ratio = re.search(r"(^| )[nNP]/\S+", title)
    if ratio and not title.startswith("sample ratio"):
        found.append("not called a sample ratio")
    return found


@pytest.mark.parametrize("titles", [stated_titles, system_titles])
def test_titles_of_axes_follow_the_rules(titles) -> None:
    found = list(titles())
    assert len(found) > 100
    broken = {f"{place}: {title!r}": wrong for place, title in found if (wrong := faults(title))}
    assert not broken


@pytest.mark.parametrize(
    "title",
    [
        "samples per dimension n/d",
        "students times steps m t / eta",
        "rank over d",
        "error R = |S − S*|² / d",
        "sqrt(N / d)",
        "training strings in units of P*, N/P*",
        "Error",
        "n / d",
        "rank/dimension",
        "overlap (squared",
        "rank of the eigenvalue",
    ],
)
def test_other_notations_are_found(title: str) -> None:
    assert faults(title)


def test_one_symbol_has_one_word() -> None:
    """The symbols n, d and t of a horizontal axis name the same kind of quantity everywhere."""
    words: dict[str, set[str]] = {}
    for _, title in [*system_titles(), *stated_titles()]:
        match = re.fullmatch(r"([a-z ]+) ([a-z])", title)
        if match:
            words.setdefault(match[2], set()).add(match[1])
    assert words["d"] == {"dimension"}
    assert words["t"] <= {"time"}
    assert words["n"] == {"samples", "queries", "training images", "training rows"}
