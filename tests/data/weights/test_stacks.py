"""Arrays with three or more axes: experts become matrices, filters stay, and unknown ones are refused."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import save_file

from solvable import diagnose_weights
from solvable.data.weights.opening import open_weights
from solvable.diagnose.jobs import bytes_of
from solvable.diagnose.measured_ranks import evaluations_of, measure_ranks
from solvable.errors import InvalidData


def array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def read(source):
    return {stored.name: stored for stored in open_weights(source).arrays}


@pytest.mark.parametrize(
    "name",
    [
        "model.layers.0.mlp.experts.gate_up_proj",  # transformers 5: Mixtral, Qwen, GPT-OSS
        "model.layers.0.block_sparse_moe.input_linear.weight",  # Granite and JetMoE before
        "blk.0.ffn_gate_exps.weight",  # GGUF
    ],
)
@pytest.mark.parametrize("ending", ["safetensors", "npz", "pt"])
def test_experts_are_split_along_their_axis(tmp_path, name, ending):
    whole = array(8, 48, 40)
    path = tmp_path / f"m.{ending}"
    if ending == "safetensors":
        save_file({name: whole}, path)
    elif ending == "npz":
        np.savez(path, **{name: whole})
    else:
        torch = pytest.importorskip("torch")
        torch.save({name: torch.tensor(whole)}, path)
    found = read(path)
    assert list(found) == [f"{name}[{k}]" for k in range(8)]
    for place, stored in enumerate(found.values()):
        assert stored.shape == (48, 40)
        np.testing.assert_array_equal(stored.read(), whole[place])
    # An archive is unpacked as a whole; the others read one matrix.
    assert bytes_of(stored) >= 4 * (whole.size if ending == "npz" else whole[0].size)
    rows = diagnose_weights(path, workers=1)
    assert len(rows.matrices) == 8
    assert rows.matrices[3].layout == "one array of 8 experts, split along its first axis"
    assert rows.matrices[3].norm == pytest.approx(np.linalg.norm(whole[3]), rel=1e-5)
    assert len(diagnose_weights(path, quick=True, workers=1).matrices) == 8


def test_each_direction_belongs_to_its_expert():
    whole = array(4, 60, 90) / 90**0.5
    left, right = array(60, seed=1), array(90, seed=2)
    whole[2] += 4 * np.outer(left / np.linalg.norm(left), right / np.linalg.norm(right))
    rows = diagnose_weights({"mlp.experts.down_proj": whole}, workers=1).matrices
    assert [len(row.features) for row in rows] == [0, 0, 1, 0]


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("encoder.0.weight", (64, 32, 3)),  # Conv1d (outputs, inputs, width)
        ("ups.0.weight", (512, 256, 16)),  # its transpose
        ("encoder.pos_conv_embed.conv.weight_v", (96, 48, 128)),  # wav2vec 2
        ("stft.forward_basis_buffer", (258, 1, 256)),  # silero
        ("raw.weight", (64, 2, 251)),  # a filter of raw sound
        ("backbone.mixer.conv1d.weight", (128, 1, 4)),  # Mamba
        ("features.0.weight", (64, 3, 11, 11)),
        ("patch_embed.proj.weight", (96, 3, 32, 32)),
        ("video.weight", (32, 16, 3, 3, 3)),
    ],
)
def test_filters_of_convolutions_stay_as_they_are(name, shape):
    whole = array(*shape)
    found = read({name: whole, f"other.{name}": whole})
    assert [stored.shape for stored in found.values()] == [shape] * 2
    np.testing.assert_array_equal(found[name].read(), whole)


def test_arrays_that_share_their_first_axis_are_stacks():
    # Layers scanned by JAX; one array alone shows nothing.
    first, second = array(6, 128, 96), array(6, 96, 128)
    found = read({"layers/up/kernel": first, "layers/down/kernel": second})
    assert len(found) == 12
    np.testing.assert_array_equal(found["layers/down/kernel[5]"].read(), second[5])
    rows = diagnose_weights({"up/kernel": first, "dense": array(40, 30)}, workers=1)
    (refused,) = (row for row in rows.refused if row.shape == (6, 128, 96))
    assert refused.reason.startswith("not read: its axes (6, 128, 96) are no filter")


def test_leading_axes_of_one_are_dropped():
    found = read({"pos_embed": array(1, 197, 96), "cls_token": array(1, 1, 96)})
    assert found["pos_embed"].shape == found["pos_embed"].read().shape == (197, 96)
    assert found["cls_token"].shape == (1, 96)


@pytest.mark.parametrize(
    "shape", [(3, 3, 512, 512), (64, 64, 1280), (70, 128, 128), (5000, 6000, 70)]
)
def test_unknown_arrays_are_refused_by_name(shape):
    whole = np.broadcast_to(np.float32(1.0), shape)
    (stored,) = open_weights({"w": whole, "v": np.ones((3, 3))}).arrays[:1]
    with pytest.raises(InvalidData, match=r"not read: .* no filter .* pass a dictionary"):
        stored.read()


def test_a_hostile_number_of_experts_makes_no_rows(tmp_path):
    import json

    shape = [10**6, 2, 2]
    header = {"moe.w": {"dtype": "F8_E4M3", "shape": shape, "data_offsets": [0, 4 * 10**6]}}
    text = json.dumps(header).encode()
    path = tmp_path / "w.safetensors"
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(4 * 10**6))
    assert len(open_weights(path).arrays) == 1


def test_a_users_loss_gets_the_arrays_as_they_are_stored():
    whole = {"moe.up": array(3, 9, 8), "pos_embed": array(1, 9, 70), "w.weight": array(6, 8)}
    seen = []

    def loss(arrays):
        seen.append({name: one.shape for name, one in arrays.items()})
        return 1.0 + float(np.square(arrays["w.weight"] - whole["w.weight"]).sum())

    found = measure_ranks(whole, loss)
    assert [row.name for row in found.rows] == ["w.weight"]
    assert all(shapes == {name: one.shape for name, one in whole.items()} for shapes in seen)
    assert len(seen) == found.evaluations <= evaluations_of(open_weights(whole).unchanged)
