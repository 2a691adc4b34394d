"""Controls of every parameter, and the command and Python lines of a setting."""

from __future__ import annotations

import math
import shlex

import pytest

from solvable.cli.settings import read_settings
from solvable.explore.controls import controls
from solvable.explore.snippets import command_of, python_of
from solvable.frame import registry

NAMES = [listing.name for listing in registry.available()]


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_has_a_control_that_holds_its_default(name):
    system = registry.load(name)
    found = controls(system)
    assert [control.name for control in found] == list(system.parameters.model_fields)
    assert sum(control.axis for control in found) == 1
    for control in found:
        assert control.description, control.name
        if control.kind == "choice":
            assert control.default in control.values
        if control.kind == "slider":
            assert control.low <= control.default <= control.high, control.name
            assert math.isfinite(control.low)
            assert control.low < control.high
            assert control.least is None or control.low >= control.least
            assert control.most is None or control.high <= control.most
            if control.scale == "log":
                assert 0 < control.first < control.high
                assert control.low in (0, control.first)
            assert control.at(0.0) == pytest.approx(control.low, rel=1e-2)
            assert control.at(1.0) == pytest.approx(control.high, rel=1e-2)


def test_constraints_and_presets_set_the_range():
    found = {control.name: control for control in controls(registry.load("sequential-recovery"))}
    assert found["dimension"].integer
    assert found["dimension"].scale == "log"
    assert found["decay"].scale == "linear"
    assert [found["decay"].low, found["decay"].high] == pytest.approx(
        [0.0, 1.0]
    )  # as in the presets
    assert found["readout"].values == ("identity", "tanh")
    assert found["samples"].axis


def test_a_slider_from_zero_over_decades_is_logarithmic():
    system = registry.load("quadratic-network")
    noise = next(control for control in controls(system) if control.name == "noise")
    assert noise.scale == "log"
    assert [noise.low, noise.at(0.0), noise.high] == pytest.approx([0.0, 0.0, 400.0])
    # one key press changes the noise by a few per cent, as at a noise of 0.5
    assert noise.at(151 / 300) / noise.at(150 / 300) < 1.05
    assert noise.first <= 0.05


def test_command_and_python_lines_give_the_setting():
    system = registry.load("single-index")
    settings = {"link": "cos(2*z)", "noise": 0.25, "estimator": "optimal"}
    command = command_of(system, settings)
    assert command == "solvable theory single-index --set 'link=cos(2*z)' noise=0.25"
    words = shlex.split(command)[4:]
    assert read_settings(system, words) == {"link": ["cos(2*z)"], "noise": ["0.25"]}
    scope: dict[str, object] = {}
    exec(python_of(system, settings), scope)
    assert scope["found"].points[0].parameters["noise"] == pytest.approx(0.25)
    assert command_of(system, {}) == "solvable theory single-index"
