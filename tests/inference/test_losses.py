"""Proximal maps minimise their objective, and functions that are no convex loss are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from solvable.errors import InvalidParameter
from solvable.inference import Loss, Penalty

NAMED = [Loss("square"), Loss("logistic"), Loss("hinge"), Loss("huber", 0.5)]
OWN = [
    Loss(value=lambda y, z: np.abs(y - z)),
    Loss(prox=lambda y, u, V: u + np.clip(y - u, -V, V), value=lambda y, z: np.abs(y - z)),
    Loss(value=lambda y, z: np.logaddexp(0, -y * z)),
]
numbers = st.floats(-30, 30)


@pytest.mark.parametrize("loss", NAMED + OWN, ids=lambda loss: loss.shown)
@given(y=st.sampled_from([-1.0, 1.0]), omega=numbers, V=st.floats(1e-2, 200))
def test_the_proximal_map_is_a_minimum(loss, y, omega, V):
    def cost(z):
        return float(loss.values(np.array(y), np.array(z))) + (z - omega) ** 2 / (2 * V)

    end = float(loss.prox(np.array([y]), np.array([omega]), V)[0])
    for step in (1e-3, 0.1, 1.0):
        assert cost(end) <= min(cost(end - step), cost(end + step)) + 1e-9 * (1 + cost(end))


@pytest.mark.parametrize("V", [1e-3, 1.0, 20.0, 180.0, 1e4])
def test_the_logistic_map_solves_its_equation_where_newton_steps_cycle(V):
    from scipy.special import expit

    u = np.linspace(-300, 300, 4_001)
    p = Loss("logistic").prox(np.ones_like(u), u, V)
    np.testing.assert_allclose(p, u + V * expit(-p), atol=1e-12 * (1 + V) + 1e-12)


def test_slopes_of_a_loss_jump_only_at_its_kinks():
    for loss in NAMED:
        for y, V in ((1.0, 0.7), (-1.0, 2.0)):
            omega = np.linspace(-6, 6, 200_001)
            bend = np.abs(np.diff(loss.force(np.full_like(omega, y), omega, V), 2))
            places = omega[1:-1][bend > 1e-6]
            kinks = np.array(loss.kinks(y, V))
            assert (np.abs(places[:, None] - kinks).min(axis=1, initial=9.0) < 1e-4).all()
            assert len(np.unique(places.round(2))) == len(kinks)


def test_a_function_of_a_name_is_the_named_loss():
    y, omega = np.ones(50), np.linspace(-5, 5, 50)
    own = Loss(lambda y, u, V: y * np.clip(1.0, y * u, y * u + V))
    np.testing.assert_allclose(own.prox(y, omega, 0.4), Loss("hinge").prox(y, omega, 0.4))
    assert own.values(y, omega) is None


def test_names_may_be_written_in_other_ways():
    assert Loss("Huber", 0.5) == Loss("huber", 0.5)
    assert Penalty("elastic_net", 1.0, 0.5) == Penalty("Elastic net", 1.0, 0.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Loss("hnige"), "Did you mean 'hinge'"),
        (lambda: Loss(), "no name; allowed"),
        (lambda: Loss("square", prox=lambda y, u, V: u), "with a function"),
        (lambda: Loss("huber", 0.0), "width is 0.0; allowed: above 0"),
        (lambda: Loss("huber", -1.0), "width is -1.0"),
        (lambda: Loss(value=lambda y, z: -(z**2)), "not convex at z"),
        (lambda: Loss(value=lambda y, z: np.cos(z)), "not convex at z"),
        (lambda: Loss(value=lambda y, z: z * np.nan), "value returned NaN"),
        (lambda: Loss(value=lambda y, z: np.zeros(3)), r"value returned shape \(3,\)"),
        (lambda: Loss(prox=lambda y, u, V: u * np.nan), "or NaN, at V"),
        (lambda: Loss(prox=lambda y, u, V: 2 * u), "not convex: its proximal operator rises by 2"),
        (lambda: Loss(prox=lambda y, u, V: -u), "not convex: its proximal operator"),
        (
            lambda: Loss(prox=lambda y, u, V: u / (1 + V), value=lambda y, z: z**2),
            "prox does not minimise value",
        ),
        (lambda: Penalty("l3", 1.0), "allowed: l2, l1, elastic net"),
        (lambda: Penalty("l2", -1.0), "strength is -1.0"),
        (lambda: Penalty("l2", np.nan), "strength is nan"),
        (lambda: Penalty("l1", 1.0, 0.5), "allowed: the elastic net alone"),
    ],
)
def test_bad_input_is_refused_in_one_line(make, message):
    with pytest.raises(InvalidParameter, match=message) as error:
        make()
    assert "\n" not in str(error.value)
