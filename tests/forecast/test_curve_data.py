"""Curves as people have them: frames, dictionaries, scores, exports, means with deviations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import solvable
from solvable.errors import InvalidData
from solvable.forecast import LearningCurve


def test_frames_and_dictionaries_are_read_as_files(tmp_path):
    columns = {"n": [100, 100, 200, 200], "error": [0.31, 0.29, 0.21, 0.19], "seed": [1, 2, 1, 2]}
    frame = pd.DataFrame(columns)
    frame.to_csv(tmp_path / "a.csv", index=False)
    curves = [LearningCurve.of(one) for one in (frame, columns, tmp_path / "a.csv")]
    for curve in curves:
        np.testing.assert_array_equal(curve.errors, columns["error"])
        assert len(set(curve.replicates)) == 2
    wide = LearningCurve.of({"n": [100, 200], "a": [0.3, 0.2], "b": [0.4, np.nan]})
    np.testing.assert_allclose(wide.errors, [0.3, 0.4, 0.2])
    assert LearningCurve.of(wide) is wide


def test_the_result_of_learning_curve_is_forecast():
    from sklearn.linear_model import LinearRegression
    from sklearn.model_selection import learning_curve

    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 10))
    y = X @ np.ones(10) + 3 * rng.standard_normal(400)
    shares = np.geomspace(0.06, 1, 5)
    measured = learning_curve(LinearRegression(), X, y, train_sizes=shares, cv=5, scoring="r2")
    curve = LearningCurve.of(measured)
    np.testing.assert_allclose(curve.means, 1 - measured[2].mean(axis=1))
    assert curve.notes == ("Errors are 1 minus the scores.",)
    found = solvable.forecast_curve(measured)
    assert curve.notes[0] in found.diagnostics.notes
    losses = LearningCurve.of(([10, 20], [[-4.0, -5.0], [-2.0, -3.0]]))
    np.testing.assert_allclose(losses.means, [4.5, 2.5])


def read(tmp_path, text):
    (tmp_path / "curve.csv").write_text(text)
    return LearningCurve.of(tmp_path / "curve.csv")


def test_accuracies_become_errors(tmp_path):
    curve = read(tmp_path, 'n,accuracy\n"1,000",0.8\n"2,000",0.9\n')
    assert curve.sizes.tolist() == [1000, 2000]
    np.testing.assert_allclose(curve.errors, [0.2, 0.1])
    percent = read(tmp_path, "n,val_accuracy\n10,80\n20,90\n")
    assert percent.errors.tolist() == [20, 10]
    assert "in percent" in percent.notes[0]


def test_means_with_deviations_become_runs(tmp_path):
    curve = read(tmp_path, "n,error,std,runs\n10,0.4,0.02,5\n20,0.3,0.01,4\n")
    np.testing.assert_allclose(curve.means, [0.4, 0.3])
    np.testing.assert_allclose(np.sqrt(curve.variances), [0.02, 0.01])
    assert curve.counts.tolist() == [5, 4]
    of_mean = read(tmp_path, "n,error,se\n10,0.4,0.02\n20,0.3,0.01\n")
    np.testing.assert_allclose(np.sqrt(of_mean.variances / of_mean.counts), [0.02, 0.01])


def test_an_export_of_runs_is_read(tmp_path):
    header = '"n_train","a - err","a - err__MIN","a - err__MAX","b - err"'
    curve = read(tmp_path, f"{header}\n10,0.5,0.5,0.5,0.4\n20,0.3,0.3,0.3,0.2\n")
    np.testing.assert_allclose(curve.means, [0.45, 0.25])
    assert set(curve.replicates) == {"a - err", "b - err"}


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (3, "the curve is a int"),
        ({"n": [1, 2], "error": [1]}, r"\[1, 2\] entries"),
        (([1, 2], [3.0, 4.0]), "scores hold 4"),
        (([1, 2], [["a"], ["b"]]), "cannot be read"),
        (([1, 2, 3], [0.1, 0.2]), "shape"),
        ({"n": [1, 2], "accuracy": [101, 2]}, "at most 1, or percentages"),
        ({"n": [1, 2], "error": [0.2, 0.1], "std": [0.1, 0.1]}, "unknown number of runs"),
    ],
)
def test_other_data_are_refused(data, said):
    with pytest.raises(InvalidData, match=said):
        LearningCurve.of(data)
