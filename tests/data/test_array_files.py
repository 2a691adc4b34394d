"""Reading of NPY and NPZ files, and of folders of such files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from solvable.data import load, load_new, open_stream
from solvable.data.raw_data import PART_ROWS
from solvable.errors import InvalidData, InvalidParameter

RNG = np.random.default_rng(1)
X = RNG.standard_normal((40, 3))
Y = RNG.standard_normal(40)
IMAGES = RNG.random((40, 4, 5)).astype(np.float32)
LABELS = np.array(["cat", "dog"] * 20)


def npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **arrays)
    return path


def pair(folder: Path, suffix: str = "", X: np.ndarray = X, y: np.ndarray = Y) -> Path:
    folder.mkdir(exist_ok=True)
    np.save(folder / f"X{suffix}.npy", X)
    np.save(folder / f"y{suffix}.npy", y)
    return folder


@pytest.mark.parametrize("key", ["X", "data", "features"])
@pytest.mark.parametrize("target", ["y", "labels"])
def test_npz(tmp_path: Path, key: str, target: str) -> None:
    data = load(npz(tmp_path / "a.npz", **{key: X, target: Y}))
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, Y)
    assert (data.kind, data.columns, data.target) == ("regression", ("x0", "x1", "x2"), target)


def test_npz_with_another_target_and_names(tmp_path: Path) -> None:
    path = npz(tmp_path / "a.npz", X=X, y=Y, z=LABELS, columns=np.array(["a", "b", "c"]))
    data = load(path, target="z")
    assert (data.kind, data.class_labels, data.columns) == ("binary", ("cat", "dog"), tuple("abc"))
    column = load(path, target="b")
    np.testing.assert_array_equal(column.y, X[:, 1])
    assert column.columns == ("a", "c")


def test_npz_of_columns_is_a_table(tmp_path: Path) -> None:
    colours = np.array(["red", "", "blue", "red"] * 10)
    data = load(npz(tmp_path / "a.npz", size=X[:, 0], colour=colours, y=Y))
    assert data.columns == ("size", "colour=blue", "colour=red")


@pytest.mark.parametrize("shape", [(40, 4, 5), (40, 2, 5, 2)])
def test_images(tmp_path: Path, shape: tuple[int, ...]) -> None:
    data = load(npz(tmp_path / "a.npz", images=IMAGES.reshape(shape), y=LABELS))
    assert data.image_shape == shape[1:]
    assert data.X.dtype == np.float32
    np.testing.assert_array_equal(data.X.reshape(shape), IMAGES.reshape(shape))


def test_folder_of_a_pair_stays_on_disk(tmp_path: Path) -> None:
    big = RNG.standard_normal((PART_ROWS + 100, 2)).astype(np.float32)
    data = load(pair(tmp_path / "f", X=big, y=big[:, 0]))
    assert np.shares_memory(data.X, data.table.numeric)
    assert isinstance(data.X, np.memmap) or isinstance(data.X.base, np.memmap)
    np.testing.assert_array_equal(data.X, big)


def test_pairs_and_shards_in_the_order_of_their_names(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs"
    shards = tmp_path / "shards"
    shards.mkdir()
    for i in (1, 0, 2):
        rows = slice(10 * i, 10 * i + 10)
        pair(pairs, f"_{i}", X[rows], Y[rows])
        npz(shards / f"part-{i}.npz", X=X[rows], y=Y[rows])
    for folder in (pairs, shards):
        data = load(folder)
        np.testing.assert_array_equal(data.X, X[:30])
        np.testing.assert_array_equal(data.y, Y[:30])


def test_class_folders(tmp_path: Path) -> None:
    for i, (image, label) in enumerate(zip(IMAGES, LABELS, strict=True)):
        (tmp_path / str(label)).mkdir(exist_ok=True)
        np.save(tmp_path / str(label) / f"{i:02d}.npy", image)
    data = load(tmp_path)
    assert data.image_shape == (4, 5)
    assert data.class_labels == ("cat", "dog")
    np.testing.assert_array_equal(data.X[data.y == 1].reshape(20, 4, 5), IMAGES[1::2])
    assert "sub-folders" in data.treatments[0]


def test_new_images_need_no_classes(tmp_path: Path) -> None:
    data = load(npz(tmp_path / "a.npz", X=IMAGES, y=LABELS))
    folder = tmp_path / "new"
    folder.mkdir()
    for i in (1, 0):
        np.save(folder / f"{i}.npy", IMAGES[i])
    rows = load_new(folder, data.preparation)
    np.testing.assert_array_equal(rows.X, data.X[:2])
    assert rows.y is None
    with pytest.raises(InvalidData, match=r"holds '0.npy', '1.npy'; allowed"):
        load(folder)
    np.save(folder / "2.npy", np.zeros((5, 4)))
    with pytest.raises(InvalidData, match="images of mixed size"):
        load_new(folder, data.preparation)
    turned = npz(tmp_path / "b.npz", X=IMAGES.reshape(40, 5, 4))
    with pytest.raises(InvalidData, match=r"have shape \(5, 4\), .* of the model have \(4, 5\)"):
        load_new(turned, data.preparation)


def test_images_of_ones_own_for_a_model_of_digits(tmp_path: Path) -> None:
    digits = load("digits")
    path = npz(tmp_path / "own.npz", X=digits.X[:5].reshape(5, 8, 8))
    np.testing.assert_array_equal(load_new(path, digits.preparation).X, digits.X[:5])


def test_one_npy_with_a_column_as_target(tmp_path: Path) -> None:
    np.save(tmp_path / "table.npy", X)
    data = load(tmp_path / "table.npy", target="x1")
    np.testing.assert_array_equal(data.y, X[:, 1])
    np.testing.assert_array_equal(data.X, X[:, [0, 2]])


def test_npy_with_the_target_beside_it(tmp_path: Path) -> None:
    pair(tmp_path)
    np.testing.assert_array_equal(load(tmp_path / "X.npy").y, Y)
    np.testing.assert_array_equal(load(str(tmp_path / "X.npy")).X, X)


def test_missing_values_and_integer_labels_in_arrays(tmp_path: Path) -> None:
    holed = X.copy()
    holed[0, 0] = np.nan
    labels = np.where(np.arange(40) == 5, np.nan, np.arange(40) % 2)
    data = load(npz(tmp_path / "a.npz", X=holed, y=labels[:, None]))
    assert data.n_samples == 39
    assert data.X[0, 0] == np.median(np.delete(X[:, 0], [0, 5]))
    assert any("dropped 1 of 40 rows" in sentence for sentence in data.treatments)


RAGGED = np.empty(3, dtype=object)
RAGGED[:] = [np.zeros((2, 2)), np.zeros((3, 2)), np.zeros((2, 2))]


@pytest.mark.parametrize(
    ("arrays", "target", "message"),
    [
        ({"X": RAGGED, "y": Y[:3]}, None, "holds Python objects .*images of different length"),
        ({"X": X, "y": Y[:7]}, None, r"target .* shape \(7,\), and X has 40 rows"),
        ({"X": X, "y": np.zeros((40, 2))}, None, r"shape \(40, 2\)"),
        ({"X": X}, None, "target of .* is not known"),
        ({"X": X, "label2": Y}, "label1", "Did you mean 'label2'"),
        ({"X": X.astype(complex), "y": Y}, None, "complex128"),
        ({"X": np.zeros((2, 1, 1, 1, 1)), "y": Y[:2]}, None, r"shape \(2, 1, 1, 1, 1\)"),
        ({"X": X[:0], "y": Y[:0]}, None, "at least one row"),
        ({"X": X, "y": np.zeros(40, "M8[D]")}, None, "datetime64"),
        ({"X": X, "y": Y, "columns": np.array(["a", "b"])}, None, "2 column names for 3"),
        ({"X": X, "y": Y, "columns": np.array(["a", "b", "a"])}, None, "'a' occurs 2 times"),
        ({"A": np.zeros((3, 3))}, None, r"holds A \(3, 3\); allowed: an array X"),
        ({"a": X[:, 0], "b": Y[:3]}, "a", r"'b' has shape \(3,\); .* 40 rows"),
        ({"X": np.full((40, 3), np.inf), "y": Y}, None, "infinite"),
    ],
)
def test_bad_npz(tmp_path: Path, arrays: dict[str, Any], target: str | None, message: str) -> None:
    with pytest.raises(InvalidData, match=message):
        load(npz(tmp_path / "a.npz", **arrays), target=target)


def test_cut_and_foreign_files(tmp_path: Path) -> None:
    whole = npz(tmp_path / "whole.npz", X=X, y=Y).read_bytes()
    cut = tmp_path / "cut.npz"
    cut.write_bytes(whole[: len(whole) // 2])
    array = tmp_path / "array.npz"
    np.save(tmp_path / "array.npy", X)
    array.write_bytes((tmp_path / "array.npy").read_bytes())
    archive = tmp_path / "archive.npy"
    archive.write_bytes(whole)
    text = tmp_path / "text.npy"
    text.write_text("not an array")
    half = tmp_path / "half.npy"
    half.write_bytes((tmp_path / "array.npy").read_bytes()[:200])
    damaged = tmp_path / "damaged.npz"
    changed = bytearray(whole)
    changed[len(whole) // 3] ^= 255
    damaged.write_bytes(changed)
    for path, message in [
        (cut, "damaged"),
        (array, "rename the file to end in .npy"),
        (archive, "rename the file to end in .npz"),
        (text, "is not a NumPy file"),
        (half, "damaged"),
        (damaged, "damaged"),
    ]:
        with pytest.raises(InvalidData, match=message):
            load(path, target="x0")


def test_images_of_mixed_size(tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    shards.mkdir()
    npz(shards / "a.npz", X=np.zeros((4, 2, 2)), y=np.arange(4) % 2)
    npz(shards / "b.npz", X=np.zeros((4, 3, 2)), y=np.arange(4) % 2)
    classes = tmp_path / "classes"
    for label, side in (("cat", 2), ("dog", 3)):
        (classes / label).mkdir(parents=True)
        np.save(classes / label / "1.npy", np.zeros((side, side)))
    for folder in (shards, classes):
        with pytest.raises(InvalidData, match=r"images of mixed size: .*(3, [23])"):
            load(folder)
        with pytest.raises(InvalidData, match="images of mixed size"):
            open_stream(folder)


def test_shards_that_do_not_fit(tmp_path: Path) -> None:
    npz(tmp_path / "a.npz", X=X, y=Y)
    npz(tmp_path / "b.npz", X=X[:, :2], y=Y)
    with pytest.raises(InvalidData, match=r"b.npz has 2 columns, a.npz has 3"):
        load(tmp_path)
    npz(tmp_path / "b.npz", X=X, label=Y)
    with pytest.raises(InvalidData, match=r"target is 'y' in a.npz and 'label' in b.npz"):
        load(tmp_path)


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match=r"holds nothing; allowed: X.npy"):
        load(tmp_path)
    (tmp_path / "notes.md").write_text("hello")
    with pytest.raises(InvalidData, match=r"holds 'notes.md'; allowed"):
        load(tmp_path)
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(InvalidData, match=r"has no target: y.npy is not in the same folder"):
        load(tmp_path)


def test_a_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match=r"no file or folder .*missing.csv"):
        load(tmp_path / "missing.csv")
    with pytest.raises(InvalidParameter, match=r"no file or folder missing.csv"):
        load("missing.csv")
    (tmp_path / "table.xlsx").write_bytes(b"x")
    with pytest.raises(InvalidParameter, match=r"unknown ending; allowed: .csv"):
        load(tmp_path / "table.xlsx")
