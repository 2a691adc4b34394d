"""The system `matrix-sensing`: parameters, one replicate, prediction, claims, figures."""

from functools import partial

import numpy as np
import pytest
import studies

from solvable.arrays import random_stream
from solvable.errors import InvalidParameter
from solvable.frame.points import NO_PREDICTION
from solvable.models.quadratic.network.solutions import bayes_optimal
from solvable.models.sensing.matrix.claims import CLAIMS
from solvable.models.sensing.matrix.measure import draw_signal
from solvable.models.sensing.matrix.parameters import MatrixSensingParameters
from solvable.models.sensing.matrix.predict import curve
from solvable.models.sensing.matrix.system import system
from solvable.models.sensing.matrix.theory import NuclearNormSignal, soft
from solvable.spectra import marchenko_pastur
from solvable.spectra.thresholds import perfect_recovery_threshold

record_of = partial(studies.record_of, system)
point_of = partial(studies.point_of, system)


@pytest.fixture(scope="module")
def points():
    base = {"dimension": 40, "sensors": "goe", "noise": 0.25}
    chosen = [
        base | {"estimator": estimator, "sample_ratio": ratio}
        for estimator in ("bayes", "nuclear-norm")
        for ratio in (0.4, 0.9)
    ]
    quiet = {"dimension": 40, "sensors": "goe", "noise": 0.0, "rank_ratio": 0.2}
    chosen += [quiet | {"sample_ratio": ratio} for ratio in (0.1, 0.25)]
    chosen += [base | {"sample_ratio": ratio} for ratio in (0.55, 0.7)]
    chosen += [base | {"sensors": "rank-one", "sample_ratio": 0.9}]
    return [point_of(setting, 8) for setting in chosen]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"sample_ratio": 1e-6}, "less than one measurement"),
        ({"noise": -0.1}, "from 0"),
        ({"rank_ratio": 0.0}, "above 0"),
        ({"exponent": 0.5}, "above 0.5"),
        ({"estimator": "ridge"}, "allowed: "),
        ({"samples": 10}, "a parameter of"),
    ],
)
def test_bad_parameters_are_refused(values, words):
    with pytest.raises(InvalidParameter, match=words):
        MatrixSensingParameters(**values)


def test_what_does_not_fit_is_refused_before_it_is_drawn():
    for values, words in (
        ({"dimension": 900}, "up to 600"),
        ({"dimension": 500, "sensors": "goe"}, "rank-one"),
        ({"dimension": 600, "sample_ratio": 4.0}, "solvable theory"),
    ):
        with pytest.raises(InvalidParameter, match=words):
            record_of(values)
        assert system.predict(MatrixSensingParameters(**values))["matrix_error"] > 0


def test_the_teacher_is_the_signal_that_was_measured():
    for signal in ("wishart", "power-law"):
        parameters = MatrixSensingParameters(dimension=12, signal=signal)
        arrays = system.teacher(parameters, random_stream("one", 0))
        drawn = draw_signal(parameters, random_stream("one", 0))
        np.testing.assert_array_equal(arrays["signal"], drawn)
    # eigenvalues sqrt(d) i^-gamma
    assert np.linalg.eigvalsh(drawn)[::-1][:3] == pytest.approx(12**0.5 / np.array([1, 2, 3]))


def test_the_line_of_theory_is_its_points_and_that_of_the_quadratic_network():
    parameters = MatrixSensingParameters(dimension=80, rank_ratio=0.3, noise=0.1)
    ratios = np.geomspace(0.1, 1.0, 25)
    line = curve(parameters, ratios)
    for k in (0, 11, 24):
        place = parameters.model_copy(update={"sample_ratio": round(ratios[k] * 6400) / 6400})
        here = system.predict(place)
        assert here["matrix_error"] == pytest.approx(line[k]["matrix_error"], rel=5e-3)
        assert here["finite_size_matrix_error"] == pytest.approx(
            line[k]["finite_size_matrix_error"], rel=1e-2
        )
        other = bayes_optimal(marchenko_pastur(0.3), sample_ratio=place.ratio, label_noise=0.1)
        assert here["matrix_error"] == pytest.approx(other.matrix_error, rel=1e-7)


def test_published_value_by_the_name_that_others_script_against():
    """Published value 0.541486 of arXiv:2408.03733, through the system (sensing 3)."""
    setting = MatrixSensingParameters(dimension=100_000, sample_ratio=0.1895984, noise=0.25)
    assert system.predict(setting)["matrix_error"] == pytest.approx(0.541486, abs=2e-6)


def divergence_of(values: np.ndarray, shrunk: np.ndarray) -> float:
    """Divergence of a function of the eigenvalues of a symmetric matrix, in units of d² / 2."""
    gaps = values[:, None] - values
    np.fill_diagonal(gaps, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        slopes = (shrunk[:, None] - shrunk) / gaps
    # the derivative f'(l_i) is 1 for kept eigenvalues, else 0; equal eigenvalues use it as difference
    kept = (shrunk != 0).astype(float)
    slopes = np.where(np.isfinite(slopes), slopes, kept[:, None])
    np.fill_diagonal(slopes, 2 * kept)
    return float(slopes.sum()) / values.size**2


def test_soft_threshold_of_drawn_matrices():
    rng = np.random.default_rng(0)
    d, t = 300, 0.3
    best = NuclearNormSignal(marchenko_pastur(0.2)).best(t)
    errors, freedoms = [], []
    for _ in range(2):
        W, G = rng.standard_normal((d, d // 5)), rng.standard_normal((d, d))
        S = W @ W.T / np.sqrt(d * (d // 5))
        values, vectors = np.linalg.eigh(S + np.sqrt(t) * (G + G.T) / np.sqrt(2 * d))
        cuts = best.cut * np.array([0.85, 1.0, 1.15])
        errors.append(
            [np.sum(((vectors * soft(values, b)) @ vectors.T - S) ** 2) / d for b in cuts]
        )
        freedoms.append(divergence_of(values, soft(values, best.cut)))
    below, here, above = np.mean(errors, axis=0)
    assert here == pytest.approx(best.error, rel=0.02)
    assert here < below
    assert here < above
    assert np.mean(freedoms) == pytest.approx(best.divergence, rel=0.02)


def test_recovery_by_the_nuclear_norm_is_where_little_noise_is_lost():
    for rank in (0.1, 0.4):
        t = np.array([1e-8])
        slope = NuclearNormSignal(marchenko_pastur(rank)).mmse(t) / t
        # E = 2 alpha t without noise   (sensing 12)
        assert slope / 2 == pytest.approx(perfect_recovery_threshold(rank, sides=2), rel=1e-3)
        assert perfect_recovery_threshold(rank, sides=2) > perfect_recovery_threshold(rank)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_claims_find_their_points(claim, points):
    verdict = claim.verdict(system.settled(points))
    assert verdict.status in ("holds", "not testable"), verdict.reason
    studies.check_without_points(claim)


@pytest.mark.parametrize(
    ("claim", "metric", "by"),
    [
        ("error-of-bayes", "matrix_error", lambda v, p: 1.5 * v),
        ("error-of-nuclear-norm", "matrix_error", lambda v, p: 1.6 * v),
        ("train-error", "train_error", lambda v, p: 2 * v),
        ("rank-of-nuclear-norm", "rank_fraction", lambda v, p: 1.4 * v),
        ("spectrum-of-the-estimate", "eigenvalues", lambda v, p: 1.5 * v),
        ("recovery-without-noise", "matrix_error", lambda v, p: 0.5),
        (
            "universality", "matrix_error",
            lambda v, p: v * (1 + 0.5 * (p.parameters["sensors"] == "rank-one")),
        ),
        ("information-of-a-label", "information_rate", lambda v, p: None if v is None else 1.5 * v),
        ("mutual-information", "information_rate", lambda v, p: None if v is None else 1.2 * v),
        (
            "bayes-beats-nuclear-norm", "matrix_error",
            lambda v, p: v + 0.1 * (p.parameters["estimator"] == "bayes"),
        ),
    ],
)  # fmt: skip
def test_claims_fail_on_records_that_contradict_them(claim, metric, by, points):
    assert studies.verdict_of(system, claim, studies.changed(points, metric, by)).status == "fails"


def test_no_claim_holds_of_what_is_known_without_measurements(points):
    studies.check_chance(system, points)


def test_a_size_too_small_for_the_first_order_says_so():
    found = system.predict(MatrixSensingParameters(dimension=10, sample_ratio=0.3))
    assert found["finite_size_matrix_error"] is None
    assert "first order" in found[NO_PREDICTION]


def test_figures(points):
    figures = studies.figures_of(system, points, 4)
    names = {one.name.split("-")[0] for one in figures}
    assert names == {"error", "spectrum", "train", "rank", "free", "information", "sensors"}
    assert all(figure.caption for figure in figures)
