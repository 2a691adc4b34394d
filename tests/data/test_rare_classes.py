"""Classes of a single row are set aside, and the other rows are used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from solvable.data import load, open_stream
from solvable.errors import InvalidData

HEADER = "person,size,kind,y\n"


def rows(labels: str) -> list[str]:
    return [f"p{i % 7},{i / 7:.3f},{'uv'[i % 2]},{label}" for i, label in enumerate(labels, 1)]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Thirty rows; the third has no target, the fifth and the last have a class of their own."""
    lines = rows("ab?ax" + "ab" * 12 + "z")
    lines[4] = "p50,9e9,only,x"
    path = tmp_path / "rare.csv"
    path.write_text(HEADER + "\n".join(lines) + "\n")
    return path


def test_its_row_is_left_out_of_everything(table: Path) -> None:
    data = load(table, target="y", groups="person")
    sentence = "set aside 2 rows of classes 'x', 'z', each the only one of its class"
    assert data.treatments[0].startswith("dropped 1 of 30 rows: target 'y' missing (an empty cell")
    assert data.treatments[1] == sentence
    assert data.kind == "binary"
    assert data.class_labels == ("a", "b")
    used = np.array([0, 1, 3, *range(5, 29)])
    assert data.file_rows is not None
    np.testing.assert_array_equal(data.file_rows, used)
    np.testing.assert_array_equal(data.y, [0, 1, 0, *[0, 1] * 12])
    for count in (data.X, data.table.numeric, data.groups, data.identical_rows()):
        assert count is not None
        assert len(count) == 27
    assert data.columns == (
        "size",
        "kind=u",
        "kind=v",
    )  # only the row that was set aside had the text 'only'
    assert data.X[:, 0].max() < 10


def test_a_stream_leaves_it_out_too(table: Path) -> None:
    stream = open_stream(table, "y")
    data = load(table, target="y")
    assert stream.n_samples == 27
    assert stream.preparation.columns == data.columns
    blocks = list(stream.chunks(10))
    np.testing.assert_array_equal(np.concatenate([y for _, _, y in blocks]), data.y)
    np.testing.assert_array_equal(np.concatenate([X for _, X, _ in blocks]), data.X)
    assert any(sentence.startswith("set aside 2 rows") for sentence in stream.treatments)


def test_a_stream_leaves_out_classes_that_a_model_never_saw(table: Path, tmp_path: Path) -> None:
    stream = open_stream(table, "y")
    later = tmp_path / "later.csv"
    later.write_text(HEADER + "\n".join(rows("abcbaca")) + "\n")
    again = open_stream(later, "y", preparation=stream.preparation)
    assert again.treatments == ("set aside 2 rows of classes not seen in training",)
    ((_, X, y),) = again.chunks(10)
    assert len(X) == again.n_samples
    np.testing.assert_array_equal(y, [0, 1, 1, 0, 0])


def test_with_fewer_than_two_classes_left_the_table_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rare.csv"
    path.write_text(HEADER + "\n".join(rows("aaaaaaaaaaab")) + "\n")
    with pytest.raises(InvalidData, match=r"fewer than two classes .* single row: 'b'"):
        load(path, target="y")
