from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from solvable.study.content import parameter_rows, report_content
from solvable.systems.base import (
    Figure,
    Metrics,
    Parameters,
    Point,
    Preset,
    Reference,
    Series,
    System,
    Verdict,
)


class Toy(Parameters):
    samples: int = Field(100, ge=2, lt=1000)
    """Number of
    samples."""
    noise: float = Field(gt=0)
    """Size of the noise."""
    readout: Literal["tanh", "identity"] = "tanh"
    """Outermost function."""


class ToySystem(System):
    """A toy.

    It has two paragraphs.

    Attributes
    ----------
    hidden : int
        Not for the reader.
    """

    name = "toy"
    title = "A toy"
    version = "3"
    references = (Reference("key", "@misc{key}"),)
    parameters = Toy
    presets: ClassVar = {"quick": Preset("quick", {"samples": [1]})}

    def measure(self, parameters: Any, rng: np.random.Generator) -> Metrics:
        return {"a": 1.0}

    def predict(self, parameters: Any) -> Metrics:
        return {"a": 1.0}

    def figures(self, points: Any) -> list[Figure]:
        return [Figure("f", "F", "x", "y", [Series("a", [len(points)], [1.0])])]


def test_parameters_with_meaning_and_range_the_varied_ones_first() -> None:
    rows = parameter_rows(Toy, {"noise": [0.1, 0.2], "samples": [50]})
    assert [row.name for row in rows] == ["noise", "samples", "readout"]
    noise, samples, readout = rows
    assert (noise.values, noise.varied, noise.allowed) == ("0.1, 0.2", True, "> 0")
    assert (samples.values, samples.varied, samples.allowed) == ("50", False, "≥ 2 and < 1000")
    assert samples.meaning == "Number of samples."
    assert (readout.values, readout.allowed) == ("tanh", "tanh | identity")


def test_a_required_parameter_that_was_not_given_is_a_dash() -> None:
    assert parameter_rows(Toy, {})[1].values == "–"


def test_a_parameter_that_the_model_has_lost_is_still_listed() -> None:
    rows = parameter_rows(Toy, {"noise": [1.0], "gone": [1, 2]})
    assert rows[0].name == "gone"
    assert rows[0].values == "1, 2"


def test_the_content_of_a_study_is_gathered() -> None:
    points = [Point({"samples": 50}, [{"a": 1.0}], {"a": 1.0})]
    found = report_content(
        ToySystem(),
        grid={"samples": [50], "noise": [0.1]},
        replicates=4,
        seed=11,
        points=points,
        verdicts=[Verdict("c", "It is so.", "holds")],
        command="solvable run toy",
        facts={"tasks": "4 of 4"},
    )
    assert (found.title, found.system, found.command) == ("A toy", "toy", "solvable run toy")
    assert found.summary == "A toy.\n\nIt has two paragraphs."
    assert found.facts["system"] == "toy, version 3"
    assert found.facts["replicates per point"] == "4"
    assert found.facts["seed"] == "11"
    assert found.facts["tasks"] == "4 of 4"
    assert {"Python", "solvable", "numpy", "scipy"} <= set(found.facts)
    assert [figure.name for figure in found.figures] == ["f"]
    assert [reference.key for reference in found.references] == ["key"]
    assert found.failures == []


def test_nothing_in_the_facts_depends_on_the_clock_or_the_machine() -> None:
    import platform
    import socket

    found = report_content(
        ToySystem(), grid={"noise": [1.0]}, replicates=1, seed=0, points=[], verdicts=[]
    )
    said = " ".join(found.facts.values())
    assert socket.gethostname() not in said.split()
    assert platform.node() not in said.split()
    assert "/" not in said
