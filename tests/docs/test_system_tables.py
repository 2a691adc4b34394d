"""Predictions in the tables of system pages are those of the present program."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from printed_tables import printed, rounds_to, table
from scipy.optimize import minimize_scalar

from solvable.frame import registry
from solvable.models.lofi.parameters import NeuralLoFiParameters
from solvable.models.lofi.target import label_law
from solvable.models.quadratic import narrow
from solvable.models.quadratic.narrow_theory import instability
from solvable.models.quadratic.network.finite_size import finite_sizes, unreachable
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.solutions import state_of

Row = list[str]
Check = Callable[[Row, Row], Mapping[int, Any]]
"""Predictions of a row by column: a number, or those at the start of a cell; from row and head."""

CASES: list[Any] = []
SLOW = pytest.mark.slow


def case(page: str, head: str, *marks: Any) -> Callable[[Check], Check]:
    """Check the table of a page whose head begins with these cells."""

    def add(check: Check) -> Check:
        CASES.append(pytest.param(page, head, check, id=f"{page}-{check.__name__}", marks=marks))
        return check

    return add


def predict(system: str, **settings: Any) -> Mapping[str, Any]:
    """Return the predictions of a system at a setting."""
    found = registry.load(system)
    return found.predict(found.parameters(**settings))


LETTERS = {
    r"\rho": "rank_ratio", r"\alpha": "sample_ratio", r"\Delta": "noise", "d": "dimension",
    r"\tilde\lambda": "regularisation",
}  # fmt: skip


def lettered(text: str) -> dict[str, float]:
    r"""Return the settings in a cell such as "$\rho=0.5$, $\alpha=0.3$"."""
    pairs = re.findall(r"([\\\w^]+)=([\d.]+)", text)
    return {LETTERS[letter]: float(value) for letter, value in pairs}


@case("hierarchical-multi-index", "learning rate")
def gradient_descent(row, head):
    if not row[0].startswith("predicted"):
        return {}
    found = predict(
        "hierarchical-multi-index", dimension=100, features=6, readout="none", learning_rate=0.003,
        sample_ratio=64,
    )  # fmt: skip
    return {2 + k: found["squared_overlap"][feature] for k, feature in enumerate((0, 3, 5))}


@case("narrow-network", "p | 1 | 2 | 3 | 5", SLOW)
def errors_of_few_units(row, head):
    settings = [narrow.NarrowParameters(width=int(p)) for p in head[1:]]
    if row[0] == "predicted":
        return dict(enumerate((narrow.predict(one)["matrix_error"] for one in settings), 1))
    if row[0].startswith("limit"):
        return dict(enumerate((narrow.solve(one).matrix_error for one in settings), 1))
    return {}


@case("narrow-network", "p | 1 | 2 | 3 | 4", SLOW)
def growth_of_perturbations(row, head):
    def state(width: str) -> Any:
        return narrow.solve(
            narrow.NarrowParameters(
                dimension=68, width=int(width), sample_ratio=0.184, exponent=0.97, noise=0.796,
                regularisation=0.049,
            )
        )  # fmt: skip

    quantities: dict[str, Callable[[Any], float]] = {
        "growth": lambda state: instability(state, 68),
        "first order": lambda state: narrow.errors_at(state, 68)["matrix_error"],
        "limit": lambda state: state.matrix_error,
    }
    if row[0] not in quantities:
        return {}
    return {k: quantities[row[0]](state(p)) for k, p in enumerate(head) if k}


CHANNELS = {
    r"$\mathrm{sign}(s^2-\text{median}": "square-sign",
    "$s^2-1$": "square",
    r"$\cos2s$": "cosine",
}


@case("neural-lofi", "channel with raw label")
def thresholds_of_channels(row, head):
    (channel,) = (name for part, name in CHANNELS.items() if row[0].startswith(part))
    found = predict("neural-lofi", channel=channel, dimension=400)
    return {1: found["emergence_ratio"][0], 2: found["weak_recovery_ratio"][0]}


@case("neural-lofi", "noise from which the direction emerges")
def samples_of_a_hidden_direction(row, head):
    strength = label_law(NeuralLoFiParameters(target="hidden")).strengths[0]
    variances = np.repeat([10.0, 1.0], [20, 300])

    def edge(q: float) -> float:
        return float(q * np.sqrt(np.sum(variances / (q - variances))))

    q = minimize_scalar(edge, bounds=(10.01, 100.0), method="bounded").x
    samples = {
        "the direction's own noise": variances.sum(),
        "noise of the strong directions": np.sum(variances / (q - variances)) * (q - 1) ** 2,
        "the direction's own noise, after removal of the strong directions": 300.0,
    }
    return {1: float(samples[row[0]] / strength**2)}


@case("neural-lofi-images", "images | n", SLOW)
def first_step_on_digits(row, head):
    if row[0] != "digits":  # MNIST needs a download
        return {}
    found = predict("neural-lofi-images")["first_step_alignment"]
    return {2: found[0], 4: found[1]}


@case("quadratic-network", "$d$, $n/d$")
def labels_that_no_positive_matrix_fits(row, head):
    d, each = map(int, row[0].split(", "))
    state = state_of(QuadraticParameters(dimension=d, sample_ratio=each / d))
    _, samples = finite_sizes(state)
    return {1: state.train_error + samples.train_error / d, 3: unreachable(state, d)}


@case("quadratic-network", r"$\alpha$ | $R$, limit")
def setting_of_a_paper(row, head):
    found = predict("quadratic-network", sample_ratio=float(row[0]))
    names = {1: "matrix_error", 2: "finite_size_matrix_error", 4: "rank_fraction"}
    return {column: found[name] for column, name in names.items()}


@case("separable-multi-index", "link | exponent", SLOW)
def thresholds_of_links(row, head):
    found = predict("separable-multi-index", link=row[0], directions=int(row[2]))
    names = ("exponent", "optimal", "leading", "first_order", "information")
    values = [found["exponent"], *(found[f"{name}_threshold_ratio"] for name in names[1:])]
    return dict(zip((1, 3, 4, 5, 6), values, strict=True))


@case("single-head-attention", "setting | matrix error: limit, at $d$, measured", SLOW)
def attention_at_finite_dimension(row, head):
    found = predict("single-head-attention", **lettered(row[0]))
    names = ("matrix_error", "test_error", "train_error")
    return {k: (found[n], found[f"finite_size_{n}"]) for k, n in enumerate(names, 1)}


LINKS = {r"$\lvert z\rvert$": "abs", r"$\cos2.7z$": "cos(2.7*z)", "cosmix": "cosmix"}


@case("single-index", "link, noise", SLOW)
def thresholds_of_one_direction(row, head):
    name, _, noise = row[0].rpartition(", ")
    setting = {"link": LINKS[name], "noise": float(noise)}
    found = predict("single-index", **setting)
    values = {1: found["threshold_ratio"], 2: found["information_threshold_ratio"]}
    if "grows" in row[3]:
        return values
    above = predict("single-index", **setting, sample_ratio=values[2] * 1.001)
    return values | {3: above["best_overlap"]}


@pytest.mark.parametrize(("page", "head", "check"), CASES)
def test_predictions_of_tables_are_present_ones(page, head, check):
    first, *rows = table(page, head)
    wrong, compared = [], 0
    for row in rows:
        for column, value in check(row, first).items():
            values = value if isinstance(value, tuple) else (value,)
            texts = printed(row[column])
            values = tuple(v for v in values if v is not None)  # such cells hold words or nothing
            compared += len(values)
            pairs = zip(values, texts[: len(values)], strict=True)
            wrong += [
                f"{row[0]}, {first[column]}: {text} is {v:.5g}"
                for v, text in pairs
                if not rounds_to(v, text)
            ]
            assert bool(texts) == bool(values)
    assert compared
    assert not wrong, "\n".join(wrong)
