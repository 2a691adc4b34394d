"""Predictions in the tables of system pages are those of the present program."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from printed_tables import number, printed, rounds_to, table
from scipy.optimize import brentq, minimize_scalar

from solvable.frame import registry
from solvable.models.lofi.parameters import NeuralLoFiParameters
from solvable.models.lofi.target import label_law
from solvable.models.quadratic import narrow
from solvable.models.quadratic.narrow_theory import instability
from solvable.models.quadratic.network.finite_size import finite_sizes, unreachable
from solvable.models.quadratic.network.parameters import QuadraticParameters
from solvable.models.quadratic.network.predict import predict as predict_network
from solvable.models.quadratic.network.solutions import state_of
from solvable.spectra.anisotropic import direction_profile

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
    r"\tilde\lambda": "regularisation", r"\kappa^\star": "width_ratio", r"\gamma": "exponent",
}  # fmt: skip


def lettered(text: str) -> dict[str, float]:
    r"""Return the settings in a cell such as "$\rho=0.5$, $\alpha=0.3$"."""
    pairs = re.findall(r"([\\\w^]+)=([\d.]+)", text)
    return {LETTERS[letter]: float(value) for letter, value in pairs}


@case("attention-indexed", "setting")
def first_order_in_dimension(row, head):
    settings = {"activation": "linear", "tokens": 1, "noise": 0.25, **lettered(row[0])}
    settings |= {"tokens": 3} if "three tokens" in row[0] else {}
    settings |= {"tokens": 2, "activation": "softmax"} if "softmax" in row[0] else {}
    found = predict("attention-indexed", **settings, dimension=1000)
    return {1: 1000 * (found["finite_size_matrix_error"] / found["matrix_error"] - 1)}


@case("bilinear-sequence", "noise")
def errors_of_matrices(row, head):
    noise, ratio = map(number, row[:2])
    found = predict(
        "bilinear-sequence", dimension=40, rank_ratio=0.2, noise=noise, sample_ratio=ratio
    )
    return {3: found["matrix_error"], 5: found["ridge_error"]}


@case("boltzmann-machine", "spike λ")
def state_evolution(row, head):
    found = predict("boltzmann-machine", dimension=10**6, sample_ratio=2, spike=number(row[0]))
    names = ("overlap", "norm", "replicon", "pca_overlap", "bayes_overlap")
    values = [found[n][0] if isinstance(found[n], list) else found[n] for n in names]
    return dict(enumerate(values, 1))


@case("curse-of-detail", "width of the first layer", SLOW)
def outliers_of_the_first_layer(row, head):
    settings = registry.load("curse-of-detail").presets["hand-over"].grid
    fixed = {name: values[0] for name, values in settings.items()}
    return {3: predict("curse-of-detail", **fixed | {"width_ratio": number(row[0])})["outliers"]}


@case("curse-of-detail", "gain $D$")
def norms_in_random_kernels(row, head):
    one, two = (
        predict(
            "curse-of-detail", dimension=64, width_ratio=16, second_width_ratio=second,
            gain=number(row[0]), scaled_samples=2,
        )["norms"]
        for second in (0, 16)
    )  # fmt: skip
    return {2: one[0], 4: one[1], 6: two[1]}


@case("curse-of-detail", "scaled samples", SLOW)
def posterior_of_one_hidden_layer(row, head):
    found = predict("curse-of-detail", dimension=8, scaled_samples=number(row[0]))
    names = ("alignment", "outliers", "outlier_rest", "test_error")
    return {3 + 2 * k: found[name] for k, name in enumerate(names)}


@case("diagonal-network", "d | n")
def random_diagonal_networks(row, head):
    names = ("dimension", "samples", "exponent", "noise", "weight_decay")
    found = predict("diagonal-network", **dict(zip(names, map(number, row), strict=False)))
    values = [found[name] for name in ("error", "train_error", "found")]
    return dict(enumerate([*values, found["captured"][0], found["captured"][2]], 5))


@case("hierarchical-multi-index", "learning rate")
def gradient_descent(row, head):
    if not row[0].startswith("predicted"):
        return {}
    found = predict(
        "hierarchical-multi-index", dimension=100, features=6, readout="none", learning_rate=0.003,
        sample_ratio=64,
    )  # fmt: skip
    return {2 + k: found["squared_overlap"][feature] for k, feature in enumerate((0, 3, 5))}


@case("kernel-staircase", "d | n")
def random_staircases(row, head):
    names = ("dimension", "samples", "noise", "hierarchy", "ridge")
    settings = dict(zip(names, map(number, (*row[:2], *row[3:6])), strict=True))
    linear, quadratic, cubic = map(float, row[2].split(", "))
    found = predict("kernel-staircase", linear=linear, quadratic=quadratic, cubic=cubic, **settings)
    values = (found["error"], *found["learned"], found["amplification"])
    return dict(zip((6, 8, 9, 10, 11), values, strict=True))


@case("label-hierarchy", "n | 60")
def errors_of_levels(row, head):
    level = int(row[0].removeprefix("level ")) - 1
    return {
        column: predict("label-hierarchy", samples=int(number(n)))["error"][level]
        for column, n in enumerate(head)
        if column
    }


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


@case("narrow-network", "d | p", SLOW)
def random_narrow_networks(row, head):
    names = ("dimension", "width", "sample_ratio", "exponent", "noise", "regularisation")
    found = predict("narrow-network", **dict(zip(names, map(number, row), strict=False)))
    return {6: found["matrix_error"], 7: found["train_error"]}


CHANNELS = {
    r"$\mathrm{sign}(s^2-\text{median}": "square-sign",
    r"$\mathrm{sign}(s^2-\text{0.9": "tail-sign",
    "$s^2-1$": "square",
    r"$\cos2s$": "cosine",
}


@case("neural-lofi", "channel with raw label")
def thresholds_of_channels(row, head):
    (channel,) = (name for part, name in CHANNELS.items() if row[0].startswith(part))
    found = predict("neural-lofi", channel=channel, dimension=400)
    return {1: found["emergence_ratio"][0], 2: found["weak_recovery_ratio"][0]}


def samples_that_stand_out(dimension: int, features: str) -> float:
    """Number of samples at which an eigenvalue is 1.5 times the largest with shuffled labels."""

    def excess(log_ratio: float) -> float:
        found = predict(
            "neural-lofi", dimension=dimension, ratio=np.exp(log_ratio), channel="square",
            label_map="tanh", lift="relu", features=features,
        )  # fmt: skip
        return float(abs(found["eigenvalue"]) / found["null_eigenvalue"] - 1.5)

    ends = np.log([2.0, 1.9 * dimension])
    return dimension * float(np.exp(brentq(excess, *ends, xtol=1e-4)))


@case("neural-lofi", "$d$ | centred features", SLOW)
def samples_saved_by_centring(row, head):
    plain, centred = (
        samples_that_stand_out(int(row[0]), name) for name in ("as-published", "centred")
    )
    return {1: centred, 2: plain, 3: plain / centred}


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


@case("neural-lofi", "$d$, $n$, $k$")
def compression_by_removed_directions(row, head):
    d, n, k = map(int, row[0].split(", "))
    hidden = NeuralLoFiParameters(
        target="hidden", channel="absolute", label_map="tanh", dimension=d, ratio=n / d,
        nuisance=k, nuisance_variance=1000,
    )  # fmt: skip
    free = direction_profile(
        label_law(hidden), variances=np.ones(d - k - 1), direction_variance=1.0, n_samples=n
    )
    found = predict("neural-lofi", **hidden.model_dump())
    return {1: free.best_squared_overlap, 2: found["deflated_squared_overlap"]}


@case("neural-lofi-images", "images | n", SLOW)
def first_step_on_digits(row, head):
    if row[0] != "digits":  # MNIST needs a download
        return {}
    found = predict("neural-lofi-images")["first_step_alignment"]
    return {2: found[0], 4: found[1]}


@case("quadratic-flow", "d | features")
def random_flows(row, head):
    names = ("dimension", "features", "width", "exponent", "initial_scale", "time")
    found = predict("quadratic-flow", **dict(zip(names, map(number, row), strict=False)))
    return dict(enumerate((*found["captured"][:3], found["risk"]), 6))


def network_of_a_power_law(**settings: Any) -> QuadraticParameters:
    """Return the parameters of a quadratic network whose target is a power law."""
    return QuadraticParameters(target="power-law", **{"exponent": 1.0, **settings})


@case("quadratic-network", r"$d$, $\alpha$, $\tilde\lambda$, $\Delta$ ($\gamma=1$)")
def ranks_at_finite_dimension(row, head):
    names = ("sample_ratio", "regularisation", "noise")
    d, *values = map(float, row[0].split(", "))
    settings = dict(zip(names, values, strict=True))
    found = predict_network(network_of_a_power_law(dimension=int(d), **settings))
    names = ("rank_fraction", "control_rank_fraction", "finite_size_rank_fraction")
    return dict(enumerate((found[name] for name in names), 1))


@case("quadratic-network", "$d$, $n/d$")
def labels_that_no_positive_matrix_fits(row, head):
    d, each = map(int, row[0].split(", "))
    state = state_of(QuadraticParameters(dimension=d, sample_ratio=each / d))
    _, samples = finite_sizes(state)
    return {1: state.train_error + samples.train_error / d, 3: unreachable(state, d)}


@case("quadratic-network", "$n/d^2$")
def deviations_of_a_power_law(row, head):
    ratio = float(row[0])
    state = state_of(
        network_of_a_power_law(dimension=24, sample_ratio=ratio, regularisation=0.1, noise=0.5)
    )
    gaussian, samples = finite_sizes(state)
    errors = [100 * each.matrix_error / 24 / state.matrix_error for each in (gaussian, samples)]
    training = 100 * gaussian.train_error / 24 / state.train_error
    return {2: errors[0], 4: errors[1], 5: 100 / (24 * ratio), 7: training}


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


@case("separable-multi-index", "n/d | 8")
def overlaps_of_the_best_map(row, head):
    link, _, directions = row[0].partition(", p = ")
    return {
        k: predict(
            "separable-multi-index", link=link, directions=int(directions), sample_ratio=number(n)
        )["squared_overlap"]
        for k, n in enumerate(head)
        if k
    }


@case("separable-multi-index", "d | p", SLOW)
def random_separable_models(row, head):
    names = ("dimension", "directions", "link", "noise", "label_map", "sample_ratio")
    found = predict("separable-multi-index", **dict(zip(names, row, strict=False)))
    return {6: found["single_overlap"], 7: found["sum_overlap"]}


@case("single-head-attention", "setting | matrix error: limit, at $d$, measured", SLOW)
def attention_at_finite_dimension(row, head):
    found = predict("single-head-attention", **lettered(row[0]))
    names = ("matrix_error", "test_error", "train_error")
    return {k: (found[n], found[f"finite_size_{n}"]) for k, n in enumerate(names, 1)}


LINKS = {
    r"$\lvert z\rvert$": "abs", r"$\cos2z$": "cos(2*z)", r"$\cos2.7z$": "cos(2.7*z)",
    "cosmix": "cosmix", "$He_4$": "he4",
}  # fmt: skip


@case("single-index", "link, noise", SLOW)
def thresholds_of_one_direction(row, head):
    name, _, noise = row[0].rpartition(", ")
    link = LINKS[name.removesuffix(" (raw)")]
    found = predict("single-index", link=link, noise=float(noise), standardised="raw" not in name)
    values = {1: found["threshold_ratio"], 2: found["information_threshold_ratio"]}
    if "grows" in row[3]:
        return values
    above = predict(
        "single-index",
        link=link,
        noise=float(noise),
        standardised="raw" not in name,
        sample_ratio=values[2] * 1.001,
    )
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
