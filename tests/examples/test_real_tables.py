"""The example on real tables runs, and its numbers are what they must be."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[2] / "examples" / "real_tables.py"


@pytest.fixture(scope="module")
def results():
    spec = importlib.util.spec_from_file_location("real_tables", PATH)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    return example.main(repeats=1)


@pytest.mark.parametrize("table", ["diabetes", "breast cancer"])
def test_every_model_beats_the_mean_label(results, table):
    for name, errors in results[table].items():
        assert errors.shape == (5,), name
        assert np.isfinite(errors).all(), name
        assert errors.mean() < 0.8, name


@pytest.mark.parametrize("table", ["diabetes", "breast cancer"])
def test_layers_do_not_spoil_a_linear_model(results, table):
    loss = results[table]["ridge + layers"] - results[table]["ridge"]
    # They are fitted on rows that the directions have not seen: what they add is close to unbiased.
    assert loss.mean() < 0.05


def test_known_strength_of_the_baselines(results):
    assert results["diabetes"]["ridge"].mean() == pytest.approx(0.51, abs=0.05)
    assert results["breast cancer"]["RBF kernel ridge"].mean() < 0.3
