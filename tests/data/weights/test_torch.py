"""Checkpoints and modules of torch: read as weights only, and never executed."""

from __future__ import annotations

import argparse
import collections
import datetime
import enum
import pickle
from pathlib import Path

import numpy as np
import pytest

from solvable import diagnose_weights
from solvable.data.weights.opening import open_weights
from solvable.errors import InvalidData, InvalidParameter

pytestmark = pytest.mark.torch

torch = pytest.importorskip("torch")


def state():
    torch.manual_seed(0)
    return {"a.weight": torch.randn(6, 4), "b.weight": torch.randn(3, 6).to(torch.bfloat16)}


def check(path):
    found = {stored.name: stored.read() for stored in open_weights(path).arrays}
    for name, tensor in state().items():
        np.testing.assert_array_equal(found[name], tensor.float().numpy())
    return open_weights(path)


@pytest.mark.parametrize("ending", ["pt", "pth", "bin", "ckpt"])
@pytest.mark.parametrize("zipped", [True, False])
def test_state_dicts(tmp_path, ending, zipped):
    path = tmp_path / f"w.{ending}"
    torch.save(state(), path, _use_new_zipfile_serialization=zipped)
    assert not check(path).notes


@pytest.mark.parametrize("keys", [("model",), ("state_dict",), ("checkpoint", "model")])
def test_nested_state_dicts_are_found(tmp_path, keys):
    content = state()
    for key in reversed(keys):
        content = {key: content, "epoch": 3}
    path = tmp_path / "w.pt"
    torch.save(content, path)
    if keys[0] == "checkpoint":  # no key that is known: all tensors, under their whole names
        names = [stored.name for stored in open_weights(path).arrays]
        assert names == ["checkpoint.model.a.weight", "checkpoint.model.b.weight"]
        path = open_weights(path, "checkpoint.model")
        assert [stored.name for stored in path.arrays] == ["a.weight", "b.weight"]
        return
    notes = check(path).notes
    assert f"under {keys[0]!r}" in notes[0]
    assert "not read: epoch" in notes[1]


def test_numbered_shards(tmp_path):
    for number, (name, tensor) in enumerate(state().items(), 1):
        torch.save({name: tensor}, tmp_path / f"pytorch_model-0000{number}-of-00002.bin")
    check(tmp_path)


class Colour(enum.Enum):
    RED = 1


class Settings(dict):
    """Dictionary of a class, as Lightning saves hyper-parameters."""


class Stateful:
    """Object whose state is no dictionary."""

    def __getstate__(self):
        return (1, [2])

    def __setstate__(self, state):
        raise AssertionError("the code of the class ran")


BESIDE = {
    "args": argparse.Namespace(lr=0.1, nested=argparse.Namespace(path=Path("x"))),
    "best": np.float64(0.5),
    "day": datetime.date(2020, 1, 2),
    "counts": collections.defaultdict(int, a=1),
    "colour": Colour.RED,
    "hyper_parameters": Settings(width=3),
    "when": Stateful(),
}


@pytest.mark.parametrize("keys", [[key] for key in BESIDE] + [[*BESIDE][:-1]])
def test_objects_next_to_weights_are_replaced_by_inert_ones(tmp_path, keys):
    path = tmp_path / "w.pt"
    torch.save({"model": state(), **{key: BESIDE[key] for key in keys}}, path)
    notes = check(path).notes
    assert f"Entries next to 'model' are not read: {keys[0]}" in notes[1]
    assert "Objects of other classes are not built, and their code never runs: " in notes[-1]
    assert "args" not in keys or "argparse.Namespace" in notes[-1]


def test_a_whole_module_is_read_without_its_code(tmp_path):
    torch.manual_seed(0)
    inner = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    module = torch.nn.Sequential(inner, torch.nn.Linear(4, 2))
    torch.save({"epoch": 1, "model": module}, tmp_path / "w.pt")
    opened = open_weights(tmp_path / "w.pt")
    found = {stored.name: stored.read() for stored in opened.arrays}
    exact = module.state_dict()
    assert list(found) == list(exact)
    for name, tensor in exact.items():
        np.testing.assert_array_equal(found[name], tensor.numpy())
    assert "torch.nn.modules.linear.Linear" in opened.notes[-1]


def averaged(step):
    return {name: tensor + step for name, tensor in state().items()}


def test_a_key_chooses_a_dictionary_and_the_others_are_named(tmp_path):
    path = tmp_path / "w.pt"
    content = {
        "model": state(),
        "ema": averaged(1),
        "swa": {"inner": averaged(2)},
        "optimizer": {"state": {0: {"exp_avg": torch.ones(3, 3)}}},
        "epoch": 3,
    }
    torch.save(content, path)
    notes = check(path).notes
    assert notes[0] == "The weights are those under 'model' of the checkpoint."
    assert notes[1] == "Entries next to 'model' are not read: optimizer and epoch."
    assert (
        notes[2] == "Other dictionaries of tensors are not read; choose one by --key: ema and swa."
    )
    for key, step in (("ema", 1), ("swa.inner", 2), ("model", 0)):
        opened = open_weights(path, key)
        assert [stored.name for stored in opened.arrays] == ["a.weight", "b.weight"]
        np.testing.assert_array_equal(opened.arrays[0].read(), averaged(step)["a.weight"].numpy())
        assert opened.notes[-1] == f"The weights are those under {key!r}."
    with pytest.raises(
        InvalidParameter, match=r"'average': w\.pt has no array .* allowed: model, ema, swa"
    ):
        open_weights(path, "average")


def test_two_networks_in_a_checkpoint_are_both_read(tmp_path):
    torch.save({"net_g": state(), "net_d": averaged(1), "epoch": 3}, tmp_path / "w.pt")
    opened = open_weights(tmp_path / "w.pt")
    assert len(opened.arrays) == 4
    assert opened.notes == ("All dictionaries are read; choose one by --key: net_g and net_d.",)


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __reduce__(self):
        return (Path.touch, (Path("sprung"),))


@pytest.mark.parametrize("zipped", [True, False])
def test_pickles_with_code_are_refused_and_not_executed(tmp_path, monkeypatch, zipped):
    monkeypatch.chdir(tmp_path)
    torch.save({"w": torch.ones(2), "trap": Trap()}, "w.pt", _use_new_zipfile_serialization=zipped)
    Path("sprung").unlink(missing_ok=True)
    with pytest.raises(InvalidData, match="could run code when read") as caught:
        open_weights("w.pt")
    assert "\n" not in str(caught.value)
    assert "weights_only=False" not in str(caught.value)
    assert not Path("sprung").exists()


def leave_a_file(name):
    Path(name).touch()


class Call:
    """Calls a function of this module when it is unpickled."""

    def __reduce__(self):
        return (leave_a_file, ("sprung",))


def test_functions_of_a_file_are_never_called(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"model": state(), "trap": Call()}, "w.pt")
    notes = check(Path("w.pt")).notes
    assert "leave_a_file" in notes[-1]
    # In the place of the weights there is nothing to read.
    torch.save(Call(), "w.pt")
    with pytest.raises(InvalidData, match="holds no tensor"):
        open_weights("w.pt")
    assert not Path("sprung").exists()


def test_the_reason_of_a_plain_pickle_is_not_the_advice_of_torch(tmp_path):
    (tmp_path / "w.bin").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InvalidData, match="could run code when read") as caught:
        open_weights(tmp_path / "w.bin")
    assert "weights_only" not in str(caught.value)
    assert "PyTorch 2.6" not in str(caught.value)


def test_other_content_is_refused(tmp_path):
    path = tmp_path / "w.pt"
    torch.save(torch.nn.Linear(2, 2), path, _use_new_zipfile_serialization=False)
    with pytest.raises(InvalidData, match="Save only the state dict"):
        open_weights(path)
    torch.save({"epoch": 3}, path)
    with pytest.raises(InvalidData, match="holds no tensor"):
        open_weights(path)
    path.write_bytes(b"\xff not torch")
    with pytest.raises(InvalidData, match=r"damaged or no file of torch|could run code"):
        open_weights(path)
    torch.save(state(), path)
    whole = path.read_bytes()
    for cut in range(0, len(whole) - 1, len(whole) // 9):
        path.write_bytes(whole[:cut])
        with pytest.raises(InvalidData, match=r"w\.pt"):
            open_weights(path)


def test_old_versions_of_torch_are_refused(tmp_path, monkeypatch):
    torch.save(state(), tmp_path / "w.pt")
    monkeypatch.setattr(torch, "__version__", "2.9.1+cpu")
    with pytest.raises(InvalidData, match=r"pip install 'torch>=2.10'"):
        open_weights(tmp_path / "w.pt")


def test_tensors_without_real_entries_fail_alone(tmp_path):
    tensors = {
        "meta": torch.empty(3, 3, device="meta"),
        "sparse": torch.eye(3).to_sparse(),
        "complex": torch.ones(2, 2, dtype=torch.complex64),
        "huge": torch.ones(1).expand(10**6, 10**6),
        "fine": torch.ones(2, 2),
    }
    *bad, fine = open_weights(tensors).arrays
    assert fine.read().shape == (2, 2)
    for stored in bad:
        with pytest.raises((InvalidData, MemoryError)):
            stored.read()


def test_a_module_states_its_heads():
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(64, 2, 96)
    found = diagnose_weights(layer, workers=1)
    assert len(found.heads) == 2
    assert {row.name for row in found.matrices} >= {"linear1.weight", "linear2.weight"}
    assert found.name == "TransformerEncoderLayer"
