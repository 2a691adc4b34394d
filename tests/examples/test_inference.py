"""Examples of `solvable.inference`: short, and equal to published numbers or to their own runs."""

import importlib.util
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "examples"
NAMES = (
    "binary_perceptron",
    "sparse_regression",
    "sparse_phase_retrieval",
    "sparse_relu",
    "one_bit_sensing",
    "committee_of_signs",
    "own_model",
)


@pytest.fixture
def example(request, monkeypatch):
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    monkeypatch.setattr(plt, "show", lambda: None)
    path = FOLDER / f"{request.param}.py"
    spec = importlib.util.spec_from_file_location(request.param, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    plt.close("all")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_has_at_most_sixty_lines(name):
    assert len((FOLDER / f"{name}.py").read_text("utf-8").splitlines()) <= 60


@pytest.mark.slow
@pytest.mark.parametrize("example", ["binary_perceptron"], indirect=True)
def test_binary_perceptron(example):
    # arXiv:1708.03395: 1.493; Györgyi 1990: 1.245
    assert example.found.algorithmic == pytest.approx(1.493, abs=1e-3)
    assert example.found.information == pytest.approx(1.245, abs=1e-3)
    law = example.state_evolution(example.prior, example.output, example.measured)
    assert example.means == pytest.approx(law.error, abs=0.06)
    assert example.means[-1] == pytest.approx(0, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("example", ["sparse_regression"], indirect=True)
def test_sparse_regression(example):
    # weak l1 line of Donoho and Tanner at densities 0.1 and 0.5
    assert example.weak_line(0.1) == pytest.approx(0.32879, abs=1e-5)
    assert example.weak_line(0.5) == pytest.approx(0.83130, abs=1e-5)
    lines = np.array([example.weak_line(rho) for rho in example.densities])
    assert (example.densities < example.line).all()
    assert (example.line < lines).all()
    threshold = np.interp(0.4, example.densities, example.line)
    assert example.error_of_run(0.4, 1.2 * threshold) < 1e-3
    assert example.error_of_run(0.4, 0.8 * threshold) > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("example", ["sparse_phase_retrieval"], indirect=True)
def test_sparse_phase_retrieval(example):
    assert example.found.weak_recovery == pytest.approx(0.5, abs=1e-6)
    assert example.found.perfect_recovery == pytest.approx(1.128, abs=1e-3)  # arXiv:1708.03395
    assert example.run(0.3, 1.3 * 0.704) == pytest.approx(1, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("example", ["sparse_relu"], indirect=True)
def test_sparse_relu(example):
    # the last model of the loop is the Gaussian one
    assert example.found.algorithmic == pytest.approx(2, abs=1e-4)
    assert example.kept.min() == 4  # the Gaussian model has no refused run
    law = example.state_evolution(example.prior, example.output, example.measured)
    error = 4 * np.maximum(example.spread, 0.5 / np.sqrt(example.D) / 2)
    assert (np.abs(example.runs.mean(axis=1) - law.error) < error).all()


@pytest.mark.slow
@pytest.mark.parametrize("example", ["one_bit_sensing"], indirect=True)
def test_one_bit_sensing(example):
    for name, output in example.outputs.items():
        for ratio in (0.5, 1.5):
            mean, error = example.measured[name, ratio]
            law = example.state_evolution(example.prior, output, ratio)
            assert mean == pytest.approx(float(law.error), abs=4 * max(error, 0.03 * mean))
        first, last = example.state_evolution(example.prior, output, [1e3, 1e4]).error
        power = np.log10(first / last)
        assert power == pytest.approx(1 if name == "logistic" else 2, abs=0.05)


@pytest.mark.parametrize("example", ["committee_of_signs"], indirect=True)
def test_committee_of_signs(example):
    # arXiv:1806.05451: 2.04, to two digits
    assert example.specialisation == pytest.approx(2.04, abs=0.015)
    own, other = example.overlap[:, 0, :].T
    # message passing at d = 6,000: 0.651(4)
    assert np.interp(3.0, example.ratios, own) == pytest.approx(0.651, abs=0.004)
    for ratio, mine, others in example.seen:
        for measured, line in ((mine, own), (others, other)):
            predicted = np.interp(ratio, example.ratios, line)
            # a mean over two units of draws that differ by 1 to 2 times d^-1/2
            assert measured == pytest.approx(predicted, abs=3 / np.sqrt(example.d))


@pytest.mark.slow
@pytest.mark.parametrize("example", ["own_model"], indirect=True)
def test_a_model_of_ones_own_is_judged(example):
    assert [verdict.status for verdict in example.found.verdicts] == ["holds"]
