"""Matrix sensing: denoisers, state evolution, message passing (arXiv:2503.14121, arXiv:2408.03733)."""

import numpy as np
import pytest

from solvable.arrays import random_stream
from solvable.message_passing.signal_laws import SymmetricSignal
from solvable.models.sensing.matrix.parameters import MatrixSensingParameters
from solvable.models.sensing.matrix.predict import _eigenvalues
from solvable.models.sensing.matrix.system import system
from solvable.models.sensing.matrix.theory import NuclearNormSignal, group_means, soft
from solvable.spectra import SpectralLaw, denoising_error, marchenko_pastur
from solvable.spectra.denoiser import empirical_denoised


def drawn(d, rho, t, rng):
    """Draw a signal S and S + sqrt(t) G."""
    r = round(rho * d)
    W, G = rng.standard_normal((d, r)), rng.standard_normal((d, d))
    S = W @ W.T / np.sqrt(r * d)
    return S, S + np.sqrt(t) * (G + G.T) / np.sqrt(2 * d)


@pytest.mark.parametrize("rho", [0.2, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("t", [0.05, 0.3, 1.0, 3.0])
def test_both_forms_of_the_denoising_error(rho, t):
    """t - (4 pi² / 3) t² int mu³ = t - 4 t² int mu h² (sensing 2)."""
    law = SpectralLaw(marchenko_pastur(rho), noise=t**0.5)
    assert law.weights.sum() == pytest.approx(1, abs=1e-6)
    hilbert = (law.x - law.u) / t
    second = t - 4 * t**2 * law.integrate(hilbert**2)
    assert second == pytest.approx(denoising_error(law), abs=1e-5)


@pytest.mark.parametrize(
    ("rho", "t", "expected"),
    [
        (0.2, 0.05, 0.01785), (0.2, 0.3, 0.10233), (0.2, 1.0, 0.28890), (0.5, 0.3, 0.16889),
        (0.5, 1.0, 0.39695), (1.0, 0.3, 0.19862), (1.0, 1.0, 0.44387), (2.0, 0.3, 0.21465),
        (2.0, 3.0, 0.73232),
    ],
)  # fmt: skip
def test_denoiser_of_drawn_matrices(rho, t, expected):
    """Error of the denoiser on drawn matrices at d = 300 (sensing 1, sensing 2)."""
    signal, rng = SymmetricSignal(marchenko_pastur(rho)), np.random.default_rng(2)
    assert float(signal.mmse(np.array(t))) == pytest.approx(expected, abs=6e-6)
    errors = []
    for _ in range(6):
        S, Y = drawn(300, rho, t, rng)
        errors.append(np.sum((signal.denoise(Y, t) - S) ** 2) / 300)
    assert np.mean(errors) == pytest.approx(expected, rel=0.015)


@pytest.mark.parametrize(("rho", "t"), [(0.2, 0.3), (1.0, 1.0), (0.5, 0.1)])
def test_denoiser_without_a_prior(rho, t):
    """The Hilbert transform of the observed eigenvalues costs at most 4 % (sensing 1)."""
    signal, rng = SymmetricSignal(marchenko_pastur(rho)), np.random.default_rng(4)
    known, blind = 0.0, 0.0
    for _ in range(3):
        S, Y = drawn(300, rho, t, rng)
        values, vectors = np.linalg.eigh(Y)
        kept = empirical_denoised(values, np.sqrt(t))
        known += np.sum((signal.denoise(Y, t) - S) ** 2)
        blind += np.sum(((vectors * kept) @ vectors.T - S) ** 2)
    assert 0.995 < blind / known < 1.04


@pytest.mark.parametrize(("ratio", "expected"), [(0.15, 0.6382), (0.275, 0.3735), (0.5, 0.1639)])
def test_errors_of_state_evolution(ratio, expected):
    """Published values of arXiv:2408.03733 (sensing 3, sensing 4)."""
    setting = MatrixSensingParameters(dimension=2_000, sample_ratio=ratio, noise=0.25)
    assert system.predict(setting)["matrix_error"] == pytest.approx(expected, abs=6e-5)


@pytest.mark.parametrize("sensors", ["goe", "rank-one"])
def test_sixty_dimensions_with_their_first_order(sensors):
    """The mean error at d = 60 equals the first order in 1/d within 3 % (sensing 22)."""
    setting = MatrixSensingParameters(dimension=60, sample_ratio=0.275, noise=0.25, sensors=sensors)
    found = [
        system.measure(setting, random_stream("ten", seed))["matrix_error"] for seed in range(10)
    ]
    scatter = np.std(found, ddof=1) / np.sqrt(10)
    expected = system.predict(setting)["finite_size_matrix_error"]
    assert np.mean(found) == pytest.approx(expected, rel=0.03, abs=2.6 * scatter)


@pytest.mark.slow
def test_two_hundred_dimensions():
    """0.3735 within 0.02 at d = 200 with rank-one measurements (sensing 3)."""
    setting = MatrixSensingParameters(dimension=200, sample_ratio=0.275, noise=0.25)
    found = [
        system.measure(setting, random_stream("eight", seed))["matrix_error"] for seed in range(3)
    ]
    assert np.mean(found) == pytest.approx(0.3735, abs=0.02)


def test_training_error_of_message_passing():
    """(Delta + 2 E) (1 - D / (2 alpha))² for both estimators at d = 60, within 10 % (sensing 8)."""
    for estimator in ("bayes", "nuclear-norm"):
        setting = MatrixSensingParameters(
            dimension=60, sample_ratio=0.5, noise=0.5, sensors="goe", estimator=estimator
        )
        runs = [system.measure(setting, random_stream("train", seed)) for seed in range(4)]
        measured = np.mean([run["train_error"] for run in runs])
        assert measured == pytest.approx(system.predict(setting)["train_error"], rel=0.1)


@pytest.mark.parametrize(
    ("dimension", "setting"),
    [(40, {"sample_ratio": 1.0, "noise": 0.5}), (30, {"sample_ratio": 0.9, "noise": 0.25})],
)
def test_training_error_in_forty_dimensions(dimension, setting):
    """The mean training error of rank-one measurements has its first order in 1/d (sensing 30)."""
    known = MatrixSensingParameters(dimension=dimension, **setting)
    runs = [system.measure(known, random_stream("residual", seed)) for seed in range(60)]
    found = [run["train_error"] for run in runs]
    scatter = np.std(found, ddof=1) / np.sqrt(60)
    predicted = system.predict(known)
    assert np.mean(found) == pytest.approx(predicted["train_error"], abs=2.5 * scatter)
    # Without the variance of a label's variance the error in d dimensions is too low.
    bare = known.noise**2 / (known.noise + 2 * predicted["finite_size_matrix_error"])
    assert np.mean(found) > bare + 2.5 * scatter


def test_no_limit_of_the_training_error_without_an_error_in_d_dimensions():
    """Where the first order is too large, the training error is not predicted either."""
    prediction = system.predict(MatrixSensingParameters(dimension=6, sample_ratio=0.6))
    assert prediction["finite_size_matrix_error"] is None
    assert prediction["train_error"] is None


def test_eigenvalues_of_denoised_matrices():
    """Means of denoised eigenvalues in eight groups at d = 400 (sensing 9)."""
    setting, rng, t = MatrixSensingParameters(dimension=400), np.random.default_rng(9), 0.3
    signal, groups = SymmetricSignal(setting.spectrum), []
    for _ in range(2):
        _, Y = drawn(400, 0.5, t, rng)
        groups.append(group_means(np.linalg.eigvalsh(signal.denoise(Y, t))[::-1], 8))
    np.testing.assert_allclose(_eigenvalues(setting, t), np.mean(groups, axis=0), atol=0.03)


def test_rank_of_soft_thresholded_matrices():
    """Fraction of eigenvalues beyond the best threshold at d = 400 (sensing 11)."""
    rng = np.random.default_rng(11)
    for rho, t in ((0.2, 0.3), (0.5, 1.0)):
        best = NuclearNormSignal(marchenko_pastur(rho)).best(t)
        ranks = [
            np.mean(soft(np.linalg.eigvalsh(drawn(400, rho, t, rng)[1]), best.cut) != 0)
            for _ in range(2)
        ]
        assert np.mean(ranks) == pytest.approx(best.kept, abs=0.01)


def test_rank_with_a_large_eigenvalue():
    """Small eigenvalues count in the rank whatever the largest one is (sensing 11)."""
    setting = MatrixSensingParameters(
        dimension=100, signal="power-law", sensors="goe", estimator="nuclear-norm", noise=0.1,
        sample_ratio=0.2,
    )  # fmt: skip
    ranks = [
        system.measure(setting, random_stream("rank", seed))["rank_fraction"] for seed in range(3)
    ]
    # one eigenvalue, and three standard errors of 0.006; a cut at 5e-3 of the largest lowers it by 0.05
    assert np.mean(ranks) == pytest.approx(system.predict(setting)["rank_fraction"], abs=0.03)


def test_rank_at_exact_recovery():
    setting = MatrixSensingParameters(
        dimension=40, rank_ratio=0.2, noise=0.0, estimator="nuclear-norm", sensors="goe",
        sample_ratio=0.45,
    )  # fmt: skip
    found = system.measure(setting, random_stream("exact", 0))
    assert found["matrix_error"] < 1e-3
    assert found["rank_fraction"] == pytest.approx(0.2)
