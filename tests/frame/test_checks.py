"""The contract of a system: all own systems satisfy it, and a broken rule is named in the error."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from few_draws import few_draws
from pydantic import Field

from solvable.errors import InvalidSystem
from solvable.frame.agreement import Agreement
from solvable.frame.checks import check_system
from solvable.frame.claims import Claim, Finding
from solvable.frame.curves import Axis
from solvable.frame.panels import Panel
from solvable.frame.references import Reference
from solvable.frame.registry import available, load
from solvable.frame.system import Parameters, Preset, System
from solvable.frame.traces import Trace

SHIPPED = [listing.name for listing in available() if listing.package.startswith("solvable")]


def few(values, along_axis):
    """Return all words, the ends of numbers, and along the axis also the number in the middle."""
    if not all(isinstance(value, int | float) for value in values):
        return values
    last = len(values) - 1
    return [values[k] for k in sorted({0, last} | ({len(values) // 2} if along_axis else set()))]


@pytest.mark.parametrize("name", SHIPPED)
def test_every_system_keeps_the_contract(name, monkeypatch):
    """Claims and panels at few points of the preset, everything else at all points."""
    system = load(name)
    quick = system.presets["quick"]
    grid = {key: few(values, key == system.axis.parameter) for key, values in quick.grid.items()}
    if name == "compositional-target":  # at the second dimension a prediction takes two seconds
        grid["dimension"] = grid["dimension"][:1]
    monkeypatch.setattr(system, "presets", {**system.presets, "few": replace(quick, grid=grid)})
    with few_draws():
        check_system(system, preset="few")


@pytest.mark.slow
@pytest.mark.parametrize("name", SHIPPED)
def test_every_system_keeps_the_contract_at_all_points(name):
    check_system(load(name))


PAPER = Reference("nobody", "@misc{nobody, year = {1900}}")


class Noise(Parameters):
    """Parameters of a system that estimates the mean of Gaussian noise."""

    samples: int = Field(100, ge=1, le=10_000)
    """Number n of draws."""


def measure(parameters, rng):
    return {"mean": 1 + float(rng.standard_normal(parameters.samples).mean()) / 100}


def predict(parameters):
    return {"mean": 1.0}


MEAN = Agreement(
    "mean", "The mean is predicted.", "mean", "derived", within=0.05, because="Finite n.",
    missing="raise samples",
)  # fmt: skip


def noise(**parts):
    data = {
        "name": "noise", "title": "Noise", "version": "1", "parameters": Noise,
        "measure": measure, "predict": predict, "claims": [MEAN], "references": [PAPER],
        "axis": Axis("samples", "samples n"), "panels": [Panel("mean", "Mean", "mean", [Trace("mean")])],
        "presets": {"quick": Preset("A second.", {"samples": (100, 200)})},
    }  # fmt: skip
    return System(**data | parts)


def test_a_system_that_keeps_it_passes():
    check_system(noise())


class Undescribed(Parameters):
    samples: int = 100


def unplain(parameters, rng):
    return {"mean": rng.standard_normal(3)}


def unfinished(parameters, rng):
    return {"mean": float("nan") * rng.standard_normal()}


def constant(parameters, rng):
    return {"mean": 1.0}


def hidden_state(parameters, rng, state=np.random.default_rng(0)):  # noqa: B008
    return {"mean": float(state.standard_normal())}


def restless(parameters, rng, state=np.random.default_rng(0)):  # noqa: B008
    return {"direction": state.standard_normal(3)}


def broken(parameters, rng):
    raise ZeroDivisionError("no samples")


ALWAYS = Claim("always", "It is.", "derived", "None.", lambda points: Finding(0.0, 0.0, 1.0), 0.9)


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"name": "Noise 1"}, "its name is 'Noise 1'; allowed: lower-case words joined by hyphens"),
        ({"title": " "}, "its title is empty"),
        ({"parameters": Undescribed}, "parameter 'samples' has no description"),
        ({"claims": [MEAN, MEAN]}, "2 claims are named 'mean'"),
        (
            {"claims": [replace(MEAN, missing="run with --preset gone")]},
            "claim 'mean' names the preset 'gone', which the system does not have",
        ),
        ({"references": ()}, "it has no references"),
        ({"presets": {"quick": Preset("q", {"samples": (0,)})}}, "preset 'quick' has an invalid"),
        ({"presets": {"paper": Preset("p", {"samples": (9,)})}}, "it has no preset 'quick'"),
        ({"measure": unplain}, "measure returns 'mean': a ndarray; allowed: numbers, None"),
        ({"measure": unfinished}, "measure returns 'mean': nan; allowed: finite numbers"),
        ({"measure": constant}, "the same numbers from two random streams"),
        ({"measure": hidden_state}, "other numbers from the same random stream"),
        ({"measure": broken}, "it raised ZeroDivisionError: no samples"),
        ({"teacher": restless}, "teacher gives another 'direction' from the same random stream"),
        ({"predict": lambda parameters: {"average": 1.0}}, "no metric has one name in measure"),
        (
            {"panels": [Panel("mean", "Mean", "mean", [Trace("average")])]},
            "panel mean raised InvalidParameter: a panel names the",
        ),
    ],
)
def test_what_breaks_the_contract_is_named(parts, words):
    with pytest.raises(InvalidSystem) as caught:
        check_system(noise(**parts))
    assert words in str(caught.value)


def test_a_claim_that_cannot_fail_is_named():
    system = noise(claims=[ALWAYS])
    with pytest.raises(InvalidSystem, match="claim 'always' holds whatever is measured"):
        # By its power it would be untestable, but a subclass may override the judgement.
        check_system(Judging(system))


class Judging(System):
    """A system whose verdicts ignore the power of claims."""

    def __init__(self, system):
        vars(self).update(vars(system))

    def verdicts(self, points):
        return [claim.verdict(points) for claim in self.claims]


def test_the_grid_of_a_preset_is_written_as_after_set():
    preset = Preset("p", "task=boolean samples=1,2 widths=[10,5],[20] tuned=true link=cos(2*z)")
    assert preset.grid == {
        "task": ("boolean",), "samples": (1, 2), "widths": ((10, 5), (20,)), "tuned": (True,),
        "link": ("cos(2*z)",),
    }  # fmt: skip
