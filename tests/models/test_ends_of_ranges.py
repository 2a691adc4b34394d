"""Each number at the ends of its range: theory predicts or raises, without warnings."""

from __future__ import annotations

import warnings
from contextlib import suppress

import annotated_types as at
import numpy as np
import pytest

from solvable.data_verbs import activations_of
from solvable.errors import InvalidParameter, SolvableError
from solvable.frame import registry
from solvable.models.quadratic.network.theory import solve_quadratic
from solvable.study.parameters import validate_parameters
from solvable.verbs import theory_of

pytestmark = pytest.mark.usefixtures("few")

QUICK = {
    "boltzmann-machine", "diagonal-network", "emergence-in-sgd", "kernel-staircase",
    "matrix-sensing", "narrow-network", "quadratic-network",
}  # fmt: skip
"""Systems of the quick tier; the slow tier checks all systems."""


def ends(field):
    """Smallest and largest allowed value of a number."""
    for rule in field.metadata:
        if isinstance(rule, (at.Ge, at.Gt)):
            yield float(rule.ge) if isinstance(rule, at.Ge) else np.nextafter(rule.gt, np.inf)
        elif isinstance(rule, (at.Le, at.Lt)):
            yield float(rule.le) if isinstance(rule, at.Le) else np.nextafter(rule.lt, -np.inf)


def settings_at_ends():
    for listing in registry.available():
        system = registry.load(listing.name)
        marks = () if listing.name in QUICK else pytest.mark.slow
        for name, field in system.parameters.model_fields.items():
            if field.annotation is float:
                for value in ends(field):
                    label = f"{listing.name}-{name}-{value:g}"
                    yield pytest.param(system, name, float(value), id=label, marks=marks)


@pytest.mark.parametrize(("system", "name", "value"), list(settings_at_ends()))
def test_theory_answers_or_refuses_at_the_ends(system, name, value):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with suppress(SolvableError):
            assert system.predict(validate_parameters(system, {name: value}))


def test_every_number_has_two_ends():
    for listing in registry.available():
        for name, field in registry.load(listing.name).parameters.model_fields.items():
            if field.annotation is float:
                assert len(list(ends(field))) == 2, (listing.name, name)


@pytest.mark.parametrize(
    ("system", "setting"),
    [
        ("narrow-network", {"regularisation": 1e-300}),
        ("narrow-network", {"noise": 1e-20}),
        ("quadratic-network", {"regularisation": 5e-324}),
        ("diagonal-network", {"weight_decay": 1e-300}),
        ("boltzmann-machine", {"noise": 1e-300}),
        ("boltzmann-machine", {"spike": 1e-300}),
        ("emergence-in-sgd", {"learning_rate": 1e-320}),
        ("single-index", {"link": "9" * 320}),
    ],
)
def test_numbers_beyond_arithmetic_are_refused(system, setting):
    (name,) = setting
    with pytest.raises(InvalidParameter, match=f"{name}|formula"):
        theory_of(system, **setting)


def test_the_end_of_a_range_is_written_short():
    with pytest.raises(InvalidParameter, match="from 1e-100 up to"):
        theory_of("narrow-network", regularisation=1e-300)


def test_penalties_beyond_arithmetic_are_refused_from_python():
    with pytest.raises(InvalidParameter, match="0, or at least 1e-100"):
        solve_quadratic(np.ones(2), sample_ratio=0.5, label_noise=0.4, regularisation=1e-300)


def test_noise_of_activations_ends_where_its_square_does():
    high, low = (activations_of("he4", noise=noise).rows[0] for noise in (1e100, 1e50))
    # For beta* = 2 the number of samples grows as the square of the noise.
    assert high.threshold_ratio == pytest.approx(1e100 * low.threshold_ratio, rel=1e-6)
    with pytest.raises(InvalidParameter, match=r"noise is 1e\+308"):
        activations_of("he4", noise=1e308)


@pytest.mark.parametrize("formula", ["9" * 320, "z + " + "9" * 320])
def test_integers_that_no_float_holds_are_refused(formula):
    with pytest.raises(InvalidParameter, match="too large"):
        activations_of(formula)


def test_infinite_parts_of_a_formula_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = activations_of("max(z, -exp(1e3))")
    assert found.rows[0].parity == "odd"


@pytest.mark.parametrize(
    ("setting", "refusal"),
    [
        ({"dimension": 2, "features": 1}, "dimension is 2"),
        ({"dimension": 9, "features": 2, "layers": 4, "samples": 30}, "dimension is 9"),
        ({"dimension": 10, "degree": 1, "features": 6}, "features is 6 among 10 directions"),
        ({"dimension": 10, "degree": 3, "features": 1}, "dimension 12 to 40"),
        ({"dimension": 10, "features": 1}, None),
        ({"dimension": 10, "features": 2, "layers": 4, "samples": 30}, None),
    ],
)
def test_compositional_targets_of_few_inputs(setting, refusal):
    system = registry.load("compositional-target")
    parameters = validate_parameters(system, setting)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if refusal is None:
            assert system.predict(parameters)
            return
        with pytest.raises(InvalidParameter, match=refusal):
            system.predict(parameters)
