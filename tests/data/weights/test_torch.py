"""Checkpoints and modules of torch: read as weights only, and never executed."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pytest

from solvable import diagnose_weights
from solvable.data.weights.opening import open_weights
from solvable.errors import InvalidData

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
        return
    notes = check(path).notes
    assert f"under {keys[0]!r}" in notes[0]
    assert "not read: epoch" in notes[1]


def test_numbered_shards(tmp_path):
    for number, (name, tensor) in enumerate(state().items(), 1):
        torch.save({name: tensor}, tmp_path / f"pytorch_model-0000{number}-of-00002.bin")
    check(tmp_path)


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


def test_the_reason_of_a_plain_pickle_is_not_the_advice_of_torch(tmp_path):
    (tmp_path / "w.bin").write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InvalidData, match="could run code when read") as caught:
        open_weights(tmp_path / "w.bin")
    assert "weights_only" not in str(caught.value)
    assert "PyTorch 2.6" not in str(caught.value)


def test_other_content_is_refused(tmp_path):
    path = tmp_path / "w.pt"
    torch.save(torch.nn.Linear(2, 2), path)
    with pytest.raises(InvalidData, match="Save only the state dict"):
        open_weights(path)
    torch.save({"epoch": 3}, path)
    with pytest.raises(InvalidData, match="holds no tensor"):
        open_weights(path)
    path.write_bytes(b"not torch")
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
