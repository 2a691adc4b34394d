from __future__ import annotations

import json

import numpy as np
import pytest

from solvable.errors import InvalidData, InvalidParameter
from solvable.models.compositional.target import CompositionalTarget
from solvable.targets import HierarchicalTarget
from solvable.teachers.persistence import load_teacher, save_teacher


@pytest.fixture
def saved(tmp_path):
    return HierarchicalTarget(dimension=6, features=2).save(tmp_path / "teacher.npz")


def rewrite(path, change_header=None, **arrays):
    with np.load(path) as stored:
        content = dict(stored)
    header = json.loads(str(content["header"]))
    header.update(change_header or {})
    content.update(arrays)
    content["header"] = np.array(json.dumps(header))
    np.savez(path, **content)


def test_numbers_of_numpy_are_stored_as_numbers(tmp_path):
    path = save_teacher(tmp_path / "a", "Demo", {"n": np.int64(3)}, {"w": np.ones(2)})
    parameters, arrays = load_teacher(path, "Demo")
    assert parameters == {"n": 3}
    np.testing.assert_array_equal(arrays["w"], np.ones(2))


def test_an_existing_file_is_kept_unless_asked(saved):
    before = saved.read_bytes()
    other = HierarchicalTarget(dimension=7, features=2)
    with pytest.raises(InvalidParameter, match="exists already"):
        other.save(saved)
    assert saved.read_bytes() == before
    other.save(saved, overwrite=True)
    assert HierarchicalTarget.load(saved) == other


def test_another_kind_of_target_is_refused_by_name(saved):
    with pytest.raises(InvalidData, match=r"HierarchicalTarget\.load"):
        CompositionalTarget.load(saved)


def test_a_newer_format_is_refused(saved):
    rewrite(saved, {"format": 99})
    with pytest.raises(InvalidData, match="newer checkout"):
        HierarchicalTarget.load(saved)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"weights": np.ones(3)}, "has shape"),
        ({"weights": np.array([np.nan, 1.0])}, "NaN or infinity"),
        ({"directions": np.ones((2, 2))}, "has shape"),
    ],
)
def test_arrays_that_do_not_fit_the_parameters_are_refused(saved, arrays, words):
    rewrite(saved, **arrays)
    with pytest.raises(InvalidData, match=words):
        HierarchicalTarget.load(saved)


def test_unknown_parameters_are_refused(saved):
    rewrite(saved, {"parameters": {"dimension": 6, "features": 2, "colour": "red"}})
    with pytest.raises(InvalidData, match="colour"):
        HierarchicalTarget.load(saved)


def test_missing_parameters_are_named(saved):
    rewrite(saved, {"parameters": {"features": 2}})
    with pytest.raises(InvalidData, match="lacks the parameters dimension"):
        HierarchicalTarget.load(saved)


def test_parameters_out_of_range_are_refused(saved):
    rewrite(saved, {"parameters": {"dimension": 6, "features": 500}})
    with pytest.raises(InvalidParameter, match="more than the D"):
        HierarchicalTarget.load(saved)


@pytest.mark.parametrize("keep", [0, 10, 200])
def test_a_cut_file_is_refused(saved, keep):
    saved.write_bytes(saved.read_bytes()[:keep])
    with pytest.raises(InvalidData, match="not a saved HierarchicalTarget"):
        HierarchicalTarget.load(saved)


@pytest.mark.parametrize("kind", ["hierarchical", "compositional"])
def test_a_flipped_byte_is_refused_or_harmless(kind, tmp_path):
    """Changing any byte of the file raises InvalidData or leaves the teacher unchanged."""
    if kind == "hierarchical":
        target = HierarchicalTarget(dimension=4, features=2)
    else:
        target = CompositionalTarget(dimension=4, features=(3, 2))
    path = target.save(tmp_path / "teacher.npz")
    content = path.read_bytes()
    expected = target.sample(3, 1)
    # Damage to the directory at the end raises the largest variety of errors.
    places = [*range(0, len(content) - 400, 7), *range(len(content) - 400, len(content), 2)]
    refused = 0
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 7
        path.write_bytes(damaged)
        try:
            again = type(target).load(path)
        except InvalidData:
            refused += 1
            continue
        # Names, dates and attributes in the archive have no effect.
        assert again == target
        np.testing.assert_array_equal(again.sample(3, 1)[1], expected[1])
    assert refused > 0.4 * len(places)


def test_a_missing_file_is_no_damaged_one(tmp_path):
    with pytest.raises(FileNotFoundError):
        HierarchicalTarget.load(tmp_path / "nothing.npz")


def test_a_write_that_fails_leaves_the_older_file(saved, monkeypatch):
    before = saved.read_bytes()

    def full_disk(file, **_):
        file.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.savez", full_disk)
    with pytest.raises(OSError, match="No space"):
        HierarchicalTarget(dimension=7, features=2).save(saved, overwrite=True)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def test_a_pickle_is_never_executed(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("the file was executed",))

    for name, content in (
        ("objects.npz", {"header": np.array(Bomb(), dtype=object)}),
        ("inside.npz", {"header": np.array("{}"), "weights": np.array([Bomb()], dtype=object)}),
    ):
        np.savez(tmp_path / name, **content)
        with pytest.raises(InvalidData, match="not a saved"):
            HierarchicalTarget.load(tmp_path / name)


def test_a_missing_array_is_named(tmp_path):
    parameters = {"dimension": 6, "features": 2}
    path = save_teacher(tmp_path / "a", "HierarchicalTarget", parameters, {"weights": np.ones(2)})
    with pytest.raises(InvalidData, match="'directions' is missing"):
        HierarchicalTarget.load(path)
