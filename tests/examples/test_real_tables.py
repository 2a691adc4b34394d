"""The example on real tables runs, and its statements agree with correct numbers."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "examples" / "real_tables.py"
SPLITS = 2


@pytest.fixture(scope="module")
def example():
    spec = importlib.util.spec_from_file_location("real_tables", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def run(example):
    """Results and printed text, on fewer folds than in the script."""
    import contextlib
    import io

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        results = example.main(splits=SPLITS, repeats=1, inner=2)
    return results, printed.getvalue()


@pytest.mark.parametrize("table", ["diabetes", "breast cancer"])
def test_every_model_beats_the_mean_label(run, table):
    for name, errors in run[0][table].items():
        assert errors.shape == (SPLITS,), name
        assert np.isfinite(errors).all(), name
        assert errors.mean() < 0.9, name


@pytest.mark.parametrize("table", ["diabetes", "breast cancer"])
def test_layers_do_not_spoil_a_linear_model(run, table):
    loss = run[0][table]["ridge + layers"] - run[0][table]["ridge"]
    # A false feature occurs about once in fifty fits.
    assert loss.mean() < 0.03


def test_known_strength_of_the_baselines(run):
    # The R² of ridge on this table is 0.48 to 0.49 in textbooks.
    assert run[0]["diabetes"]["ridge"].mean() == pytest.approx(0.51, abs=0.04)
    assert run[0]["breast cancer"]["RBF kernel ridge"].mean() < 0.25


def test_prints_a_row_for_each_model_and_the_conclusion_of_its_numbers(run, example):
    results, printed = run
    for errors in results.values():
        for name, values in errors.items():
            mean, error = example.mean_and_error(values, SPLITS)
            assert f"  {name:17s} {mean:.3f} +- {error:.3f}\n" in printed
        for line in example.conclusion(errors, SPLITS):
            assert line in printed
    assert "442 rows, 10 columns" in printed
    assert "569 rows, 30 columns" in printed
    assert printed.count("outliers on all rows") == 2


def test_conclusion_names_the_winner_or_none(example):
    rng = np.random.default_rng(0)
    noise = 0.001 * rng.standard_normal((4, 10))
    errors = {
        "ridge": 0.5 + noise[0],
        "RBF kernel ridge": 0.5 + noise[1],
        "layers": 0.6 + noise[2],
        "ridge + layers": 0.4 + noise[3],
    }
    lines = example.conclusion(errors, 5)
    assert lines[0] == "lowest error: ridge + layers"
    assert lines[1].endswith("ridge wins")
    assert lines[2].endswith("RBF kernel ridge wins")
    assert lines[3].endswith("ridge + layers wins")
    tie = dict.fromkeys(errors, np.linspace(0.4, 0.6, 10))
    assert all("no significant difference" in line for line in example.conclusion(tie, 5)[1:])


def test_standard_error_allows_for_shared_training_rows(example):
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    mean, error = example.mean_and_error(values, 5)
    assert mean == pytest.approx(3)
    # Nadeau and Bengio: variance 2.5 times 1/5 + 1/4.
    assert error == pytest.approx(np.sqrt(2.5 * 0.45))
