"""Statements of the user about columns, and the mean target of each text."""

from __future__ import annotations

import json

import numpy as np
import pytest

from solvable.data import Preparation, load, load_new
from solvable.data.target_means import Means
from solvable.errors import InvalidData

ROWS = 60


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    lines = ["dose,code,site,y"]
    for i in range(ROWS):
        dose = "n.d." if i % 4 == 1 else "-999" if i % 10 == 2 else f"{rng.random():.3f}"
        lines.append(f"{dose},{rng.integers(3)},s{i % 2},{rng.random():.4f}")
    path = tmp_path / "a.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_missing_values_categories_and_excluded_columns_are_stated(file):
    stated = {"missing": ["n.d.", "-999"], "categories": ["code"], "exclude": ["site"]}
    data = load(file, target="y", **stated)
    assert data.columns == ("dose", "code=0", "code=1", "code=2", "dose: missing")
    assert data.X[:, -1].sum() == ROWS / 4 + ROWS / 10
    assert data.X[:, 0].min() >= 0
    said = " ".join(data.treatments)
    for part in ("excluded as asked: 'site'", "values count as missing", "read as categories"):
        assert part in said
    # New rows are read in the same way, also from a stored preparation.
    again = Preparation.from_dict(json.loads(json.dumps(data.preparation.to_dict())))
    new = load_new(file, again)
    np.testing.assert_array_equal(new.X, data.X)
    assert not any("ignored" in one for one in new.treatments)


def test_words_in_a_column_of_numbers_count_as_missing(file):
    data = load(file, target="y", numbers=["dose"], missing=["-999"])
    assert "dose" in data.preparation.numeric_names
    assert any("15 cells are no numbers" in one for one in data.treatments)
    np.testing.assert_array_equal(load_new(file, data.preparation).X, data.X)


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"exclude": ["sites"]}, "Did you mean 'site'"),
        ({"numbers": ["dose"], "categories": ["dose"]}, "in numbers and in categories"),
        ({"exclude": ["dose", "code", "site"]}, "all columns are excluded"),
    ],
)
def test_wrong_statements_are_refused(file, stated, said):
    with pytest.raises(InvalidData, match=said):
        load(file, target="y", **stated)


def towns(seed=0, rows=300, number=30):
    rng = np.random.default_rng(seed)
    codes = rng.integers(number, size=rows)
    level = rng.standard_normal(number)
    column = np.array([f"t{code}" for code in codes], dtype=object)
    return column, level[codes] + 0.5 * rng.standard_normal(rows), level[codes]


def test_means_are_those_of_scikit_learn_with_the_same_shrinkage():
    from sklearn.preprocessing import TargetEncoder

    column, y, _ = towns()
    fitted = Means.fit("town", column, y, 0)
    counts = {text: int((column == text).sum()) for text in set(column)}
    # weight n / (n + m) of a text's own mean gives m
    text = max(counts, key=counts.get)
    weight = (fitted.means[text][0] - y.mean()) / (y[column == text].mean() - y.mean())
    smooth = counts[text] * (1 / weight - 1)
    # noise of variance 1/4 and levels of variance about 1
    assert smooth == pytest.approx(0.25, rel=0.5)
    theirs = TargetEncoder(smooth=smooth, target_type="continuous").fit(column[:, None], y)
    np.testing.assert_allclose(fitted.encode(column), theirs.transform(column[:, None]))
    assert fitted.encode(np.array(["new", None], dtype=object)).ravel() == pytest.approx(y.mean())


def test_training_rows_are_encoded_without_their_own_target():
    column, y, _ = towns(1, rows=100, number=40)
    fitted = Means.fit("town", column, y, 0)
    cross = fitted.encode_training(column, y).ravel()
    changed = y.copy()
    changed[7] += 100.0
    assert fitted.encode_training(column, changed)[7] == pytest.approx(cross[7])
    assert fitted.refit(column, changed).encode(column[7:8]) > fitted.encode(column[7:8]) + 1


def test_a_column_of_many_texts_gets_means_in_each_fold_and_in_new_rows():
    pd = pytest.importorskip("pandas")

    column, y, level = towns(3)
    frame = pd.DataFrame({"town": column, "y": y})
    data = load(frame, target="y")
    assert data.columns[-1] == "town: mean of the target"
    part = data.split(np.arange(200), np.arange(200, 300))
    assert np.corrcoef(part.X_test[:, -1], level[200:])[0, 1] > 0.9
    new = load_new(frame, data.preparation)
    np.testing.assert_allclose(new.X, data.as_new)
    again = Preparation.from_dict(json.loads(json.dumps(data.preparation.to_dict())))
    np.testing.assert_array_equal(load_new(frame, again).X, new.X)


def test_classes_get_their_shares():
    column, y, _ = towns(4)
    codes = np.digitize(y, [-0.5, 0.5])
    fitted = Means.fit("town", column, codes, 3)
    assert len(fitted.columns) == 3
    np.testing.assert_allclose(fitted.encode(column).sum(axis=1), 1.0)
    assert Means.fit("town", column, codes, 11) is None


def test_none_is_a_class_and_a_missing_target_is_stated(tmp_path):
    rows = [f"{i},{('none', 'some', 'NA')[i % 3]}" for i in range(30)]
    (tmp_path / "a.csv").write_text("\n".join(["x,y", *rows]) + "\n")
    data = load(tmp_path / "a.csv", target="y", keep=["x"])
    assert data.class_labels == ("none", "some")
    assert "dropped 10 of 30 rows: target 'y' missing (an empty cell, NA" in data.treatments[0]


def test_a_line_of_units_is_left_out(tmp_path):
    rows = [f"{1 + i % 7}.5,{i * i},{i % 3}" for i in range(40)]
    (tmp_path / "a.csv").write_text("\n".join(["mass,length,y", "kg,cm,-", *rows]) + "\n")
    data = load(tmp_path / "a.csv", target="length")
    assert data.n_samples == 40
    assert any("line of units: 'mass', 'length'" in one for one in data.treatments)
    assert not np.isnan(data.table.numeric).any()


def test_new_rows_need_no_cell_below_a_limit(tmp_path):
    rows = [f"{'<0.5' if i % 6 == 0 else 1 + i % 9},{i % 5}.25" for i in range(60)]
    (tmp_path / "a.csv").write_text("\n".join(["dose,y", *rows]) + "\n")
    data = load(tmp_path / "a.csv", target="y", task="regression")
    assert "dose: limit" in data.columns
    (tmp_path / "new.csv").write_text("dose\n3\n4\n")
    new = load_new(tmp_path / "new.csv", data.preparation)
    np.testing.assert_array_equal(new.X, [[3, 0], [4, 0]])
