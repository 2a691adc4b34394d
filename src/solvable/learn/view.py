"""Display of learning results in a notebook and as a data frame."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from solvable.learn import choice_words, direction_words, words
from solvable.learn.figures import learn_figures
from solvable.learn.results import Learned
from solvable.learn.tables import method_table, outlook_table, rests_table, signal_table
from solvable.plots.figure import Figure
from solvable.plots.tables import Table


def line(found: Learned) -> str:
    """Return one line: the model to use, the data set and its target."""
    return f"{choice_words.recommendation(found)} {found.name}: {words.subject(found)}"


def tables(found: Learned) -> list[Table]:
    """Return tables of directions, of the errors of all methods, and of the forecast."""
    directions = [signal_table(layer) for layer in found.found if layer.directions]
    if direction_words.kinds_sentence(found.found[0], found):
        directions.append(rests_table(found.found[0]))
    outlook = [outlook_table(found)] if found.outlook.expected else []
    return [*directions, method_table(found), *outlook]


def rows(found: Learned) -> list[dict[str, Any]]:
    """Return a data frame with one row per method, learned features first."""
    return [asdict(score) for score in found.methods]


def figures(found: Learned) -> list[Figure]:
    """Return the figures of direction strengths and of the learning curve."""
    return learn_figures(found)
