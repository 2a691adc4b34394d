"""Each integer at the ends of its range: theory predicts or raises one line, without warnings."""

from __future__ import annotations

import warnings

import annotated_types as at
import pytest

from solvable.errors import MemoryLimitExceeded, SolvableError
from solvable.frame import registry
from solvable.study.parameters import validate_parameters
from solvable.teachers import first_layer
from solvable.verbs import theory_of

QUICK = {
    "bilinear-sequence", "boltzmann-machine", "emergence-in-sgd", "matrix-sensing",
    "neural-lofi-images",
}  # fmt: skip
"""Systems of the quick tier; the slow tier checks all systems."""


def whole_numbers():
    for listing in registry.available():
        system = registry.load(listing.name)
        for name, field in system.parameters.model_fields.items():
            if field.annotation is int:
                yield system, name, field


def ends(field):
    """Smallest and largest allowed value of an integer."""
    for rule in field.metadata:
        if isinstance(rule, at.Ge):
            yield rule.ge
        elif isinstance(rule, at.Le):
            yield rule.le


def settings_at_ends():
    for system, name, field in whole_numbers():
        marks = () if system.name in QUICK else pytest.mark.slow
        for value in ends(field):
            yield pytest.param(system, name, value, id=f"{system.name}-{name}-{value}", marks=marks)


@pytest.mark.parametrize(("system", "name", "value"), list(settings_at_ends()))
def test_theory_answers_or_refuses_at_the_ends(system, name, value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = system.predict(validate_parameters(system, {name: value}))
        except SolvableError as error:
            found = str(error)
    assert found
    assert not isinstance(found, str) or len(found.splitlines()) == 1


def test_every_whole_number_has_two_ends():
    lacking = [(one.name, name) for one, name, field in whole_numbers() if len([*ends(field)]) != 2]
    assert lacking == []


def test_a_lone_student_is_predicted():
    """Each draw of one student learns a different feature, so that the median of each feature is 0."""
    (found,) = theory_of("emergence-in-sgd", width=1, time=1000.0).points
    captured = found.prediction["captured"]
    assert 0 < sum(captured) <= 1
    assert captured[0] == max(captured)


def test_directions_beyond_memory_are_refused(monkeypatch):
    monkeypatch.setattr(first_layer, "available_bytes", lambda: 1e6)
    assert first_layer.draw_directions(100, 4, "orthonormal", 0).shape == (100, 4)
    with pytest.raises(
        MemoryLimitExceeded, match=r"take 32 MB; available: 1 MB\. Lower the dimension"
    ):
        first_layer.draw_directions(100_000, 10, "orthonormal", 0)


def test_the_limit_of_a_head_is_kept_where_no_expansion_holds():
    (found,) = theory_of("single-head-attention", inverse_temperature=0.1).points
    assert found.prediction["test_error"] > 0
    assert found.prediction["finite_size_test_error"] is None
    assert "first order in 1/d" in found.prediction["no prediction"]
