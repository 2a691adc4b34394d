"""The stored model predicts as the fitted one, for every method; damaged files give one clear line."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from safetensors import safe_open
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from solvable.data import load, load_new
from solvable.errors import InvalidData, InvalidParameter, NoFeatureFound
from solvable.fitting.described_arrays import read_described, write_described
from solvable.learn import Request, design, learn
from solvable.learn.blend import BlendClassifier
from solvable.learn.competitors import methods
from solvable.learn.design import Design
from solvable.learn.fold_fits import outputs_of
from solvable.learn.prediction import apply_model
from solvable.learn.stored_models import FORMAT, load_fitted, save_fitted
from solvable.learn.tree_arrays import TreeArrays
from solvable.networks.files import save_model

KEYS = (
    "learned-features",
    "nngp",
    "lazy-features",
    "rbf",
    "metric-kernel",
    "trees",
    "multi-index",
    "ridge",
    "constant",
)


@pytest.fixture(scope="module", autouse=True)
def narrow_random_features(few):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design, "DEFAULT_WIDTH", 60)
        yield


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """CSV with a category, missing values, and targets of three kinds."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((90, 3))
    colour = rng.choice(["red", "blue", "green"], 90)
    number = x[:, 0] + x[:, 1] ** 2 + (colour == "red") + 0.2 * rng.standard_normal(90)
    many = np.searchsorted(np.quantile(number, [0.3, 0.6]), number)
    lines = ["a,b,c,colour,number,two,many"]
    for i in range(90):
        cells = ["" if (i + j) % 13 == 0 else f"{x[i, j]:.6f}" for j in range(3)]
        lines.append(
            ",".join(
                [*cells, "" if i == 7 else colour[i], f"{number[i]:.6f}", "ny"[int(many[i] > 0)]]
            )
            + f",k{many[i]}"
        )
    path = tmp_path_factory.mktemp("stored") / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def dataset(table, target):
    lines = table.read_text().splitlines()
    place = lines[0].split(",").index(target)
    kept = [[*line.split(",")[:4], line.split(",")[place]] for line in lines]
    path = table.with_name(f"{target}.csv")
    path.write_text("\n".join(map(",".join, kept)) + "\n")
    return load(str(path), target=target)


def fitted(method, data):
    with warnings.catch_warnings():
        # The multi-index model of the smallest class finds no direction.
        warnings.simplefilter("ignore", NoFeatureFound)
        return method.make().fit(data.X, data.y)


@pytest.mark.parametrize("target", ["number", "two", "many"])
def test_every_method_is_stored_and_predicts_the_same(table, tmp_path, target):
    data = dataset(table, target)
    shared = Design(data.kind == "regression", "columns")
    notes = {"preparation": data.preparation.to_dict()}
    for method in methods(shared):
        model = fitted(method, data)
        path = save_fitted(model, tmp_path / f"{method.key}.safetensors", notes=notes)
        other, found = load_fitted(path)
        assert found["preparation"] == json.loads(json.dumps(notes["preparation"]))
        assert other.n_features_in_ == data.X.shape[1]
        np.testing.assert_allclose(other.predict(data.X), model.predict(data.X), rtol=1e-9)
        outputs = outputs_of(model, data.X)
        if outputs is not None and data.class_labels:
            np.testing.assert_allclose(outputs_of(other, data.X), outputs, rtol=1e-9, atol=1e-9)
        with safe_open(path, framework="numpy") as stream:  # arrays and JSON only
            assert all(stream.get_tensor(key).dtype.kind in "fiubU" for key in stream.keys())  # noqa: SIM118
        # It predicts rows with empty cells and categories of the file, the same as in memory.
        applied = apply_model(path, str(table.with_name(f"{target}.csv")))
        new = load_new(str(table.with_name(f"{target}.csv")), data.preparation)
        expected = data.preparation.target.decode(model.predict(new.X))
        if data.class_labels:
            assert list(applied.predicted) == list(expected)
        else:
            np.testing.assert_allclose(applied.predicted, expected, rtol=1e-9)
    assert {method.key for method in methods(shared)} == set(KEYS)


def categories_and_missing(rows, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((rows, 4))
    X[:, 1] = rng.choice([2.0, 3.0, 5.0, 11.0, 17.0, 40.0], rows)
    X[:, 3] = rng.integers(0, 30, rows)
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) + np.isin(X[:, 1], [3.0, 40.0]) - np.isin(X[:, 3] % 5, [0.0, 2.0])
    return X, y + np.isnan(X[:, 2]) + 0.1 * rng.standard_normal(rows)


@pytest.mark.parametrize("categories", [None, [1, 3]])
def test_trees_with_categories_and_missing_values_are_those_of_scikit_learn(categories):
    X, y = categories_and_missing(400, 1)
    fresh, _ = categories_and_missing(300, 2)
    fresh[:5, 1] = [99.0, -1.0, np.nan, 2.5, 2.0]  # categories without training rows
    options = {"categorical_features": categories, "max_iter": 20, "random_state": 0}
    number = HistGradientBoostingRegressor(**options).fit(X, y)
    trees = TreeArrays.of(number)
    np.testing.assert_allclose(trees(fresh)[:, 0], number.predict(fresh), rtol=1e-10)
    for ends in ([0.5], [0.3, 1.2]):
        classes = HistGradientBoostingClassifier(**options).fit(X, np.digitize(y, ends))
        raw = TreeArrays.checked(TreeArrays.of(classes).arrays())(fresh)
        raw = raw[:, 0] if len(ends) == 1 else raw
        np.testing.assert_allclose(raw, classes.decision_function(fresh), rtol=1e-10, atol=1e-12)
    assert (len(trees.goes_left) > 0) == (categories is not None)


def damaged(path, out, change):
    """Write a file with changed content and a matching digest, as somebody might who tampers with it."""
    arrays, content = read_described(path, (FORMAT,), "test")
    change(arrays, content)
    return write_described(out, arrays, content)


@pytest.fixture(scope="module")
def stored(table, tmp_path_factory):
    data = dataset(table, "many")
    folder = tmp_path_factory.mktemp("models")
    notes = {"preparation": data.preparation.to_dict()}
    paths = {}
    for method in methods(Design(False, "columns")):
        if method.key in ("rbf", "trees", "multi-index", "constant"):
            model = fitted(method, data)
            paths[method.key] = save_fitted(
                model, folder / f"{method.key}.safetensors", notes=notes
            )
    return paths


def shorter(name):
    def change(arrays, content):
        arrays[name] = arrays[name][:-1]

    return change


def circle(arrays, content):
    """Make a child of the first tree its own parent."""
    arrays["trees.left"] = np.zeros_like(arrays["trees.left"])


def described(**values):
    def change(arrays, content):
        content["model"] |= values

    return change


def estimator(name):
    def change(arrays, content):
        content["estimator"] = name

    return change


def without_notes(arrays, content):
    content["notes"] = {}


def without_model(arrays, content):
    del content["model"]


DAMAGE = [
    ("rbf", shorter("samples")),
    ("rbf", shorter("coefficients")),
    ("rbf", shorter("classes")),
    ("rbf", shorter("scale.mean")),
    ("rbf", described(kernel="__import__")),
    ("rbf", described(bandwidth="wide")),
    ("rbf", described(scale={"kind": "os.system"})),
    ("rbf", described(columns=10**9)),
    ("trees", shorter("trees.value")),
    ("trees", shorter("classes")),
    ("trees", circle),
    ("trees", shorter("trees.baseline")),
    ("multi-index", shorter("0.mean")),
    ("multi-index", described(models=[])),
    ("multi-index", described(models=3)),
    ("constant", shorter("shares")),
    ("constant", estimator("subprocess.Popen")),
    ("constant", without_notes),
    ("constant", without_model),
]


@pytest.mark.parametrize(("key", "change"), DAMAGE)
def test_a_damaged_model_is_one_clear_line(stored, table, tmp_path, key, change):
    path = damaged(stored[key], tmp_path / "model.safetensors", change)
    with pytest.raises(InvalidData) as raised:
        apply_model(path, str(table.with_name("many.csv")))
    message = str(raised.value)
    assert "\n" not in message
    assert "`solvable learn`" in message


def test_a_truncated_file_is_one_clear_line(stored, table, tmp_path):
    whole = stored["trees"].read_bytes()
    for size in (0, 7, 100, len(whole) // 2, len(whole) - 1):
        path = tmp_path / "model.safetensors"
        path.write_bytes(whole[:size])
        with pytest.raises(InvalidData, match="truncated") as raised:
            apply_model(path, str(table))
        assert "\n" not in str(raised.value)


def test_models_of_earlier_versions_are_read(table, tmp_path):
    data = dataset(table, "two")
    model = Design(False, "columns").network(Design(False, "columns").blocks).fit(data.X, data.y)
    # Earlier versions stored learned features only, without the name of the method.
    notes = {"preparation": data.preparation.to_dict(), "error": [0.1, 0.05, 0.2]}
    path = save_model(model, tmp_path / "model.safetensors", notes=notes)
    found = apply_model(path, str(table.with_name("two.csv")))
    assert list(found.predicted) == list(data.preparation.target.decode(model.predict(data.X)))
    with pytest.raises(InvalidParameter, match="allowed: a fitted NeuralLoFiTransformer"):
        save_fitted(object(), tmp_path / "x.safetensors")


def test_the_named_model_is_the_one_that_predicts(table, tmp_path):
    data = dataset(table, "many")
    found = learn(data, Request(folds=2))
    path = save_fitted(found.model, tmp_path / "model.safetensors", notes=found.notes)
    rows = str(table.with_name("many.csv"))
    applied = apply_model(path, rows)
    assert list(applied.predicted) == list(found.predict(rows))
    np.testing.assert_allclose(applied.probabilities, found.predict_probabilities(rows), rtol=1e-9)
    assert found.notes["method"] == found.chosen.key
    assert found.chosen.error == pytest.approx(np.mean(found.predictions != data.y))
    # A blend names its methods by their phrases, in the order of its members.
    phrase = found.chosen.phrase
    named = [one for one in methods(Design(False, "columns")) if one.phrase in phrase]
    named.sort(key=lambda method: phrase.index(method.phrase))
    blended = isinstance(found.model, BlendClassifier)
    members = found.model.members_ if blended else (found.model,)
    for method, member in zip(named, members, strict=True):
        again = fitted(method, data) if method.fit is None else method.fit(data.X, data.y)
        np.testing.assert_array_equal(member.predict(data.X), again.predict(data.X))


def test_the_same_fit_gives_the_same_bytes(table, tmp_path, monkeypatch):
    (tmp_path / "folder").mkdir()
    copy = tmp_path / "folder" / "number.csv"
    dataset(table, "number")
    copy.write_text(table.with_name("number.csv").read_text())
    monkeypatch.chdir(tmp_path)
    written = []
    for number, path in enumerate(["folder/number.csv", str(copy)]):
        found = learn(load(path, target="number"), Request(folds=2))
        # The order of the two entries of metadata was random, so each file is written eight times.
        for _ in range(8):
            model = save_fitted(found.model, tmp_path / f"{number}.safetensors", notes=found.notes)
            written.append(model.read_bytes())
    assert len(set(written)) == 1
    assert b"folder" not in written[0]
    assert b"number.csv" in written[0]
