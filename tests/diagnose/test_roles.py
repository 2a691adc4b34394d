"""Roles of arrays by name and shape, and fused projections taken apart."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from solvable.data.weights.opening import iter_weights
from solvable.diagnose import diagnose_file
from solvable.diagnose.attention.query_key_arrays import Heads, heads_of
from solvable.diagnose.roles import is_fused, parts_of, split_arrays


@pytest.mark.parametrize(
    "name", ["wte.weight", "arr_0", "", ".", "self_attn.q_proj.weight", "c_attn_scale.weight"]
)
def test_what_only_sounds_like_a_fused_projection(name):
    assert not is_fused(name, (64, 64))


def split(name: str, shape: tuple[int, int], heads: Heads = Heads(), **others: tuple[int, int]):  # noqa: B008
    whole = np.arange(shape[0] * shape[1]).reshape(shape)
    parts, layout = parts_of(name, {name: shape, **others}, heads)
    return {part.name: part.of(whole) for part in parts}, layout, whole


def test_rows_of_torch_and_columns_of_gpt2():
    parts, layout, whole = split("attn.in_proj_weight", (96, 32))
    assert list(parts) == ["query", "key", "value"]
    assert np.array_equal(parts["key"], whole[32:64])
    assert "in its rows (outputs x inputs)" in layout
    parts, layout, whole = split("h.0.attn.c_attn.weight", (32, 96))
    assert np.array_equal(parts["value"], whole[:, 64:])
    assert "in its columns (inputs x outputs)" in layout
    # The same name with a Linear layer of torch: the shape decides.
    parts, _, whole = split("h.0.attn.c_attn.weight", (96, 32))
    assert np.array_equal(parts["query"], whole[:32])
    # Neither side is three times the other: the name decides, then torch's order.
    assert split("to_qkv.weight", (192, 100))[0]["key"].shape == (64, 100)
    assert split("attn.qkv.kernel", (100, 192))[0]["key"].shape == (100, 64)


@pytest.mark.torch
def test_torch_attention_is_split_as_torch_computes_it():
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(32, 4, bias=False, batch_first=True)
    weights = layer.in_proj_weight.detach().numpy()
    parts, _ = parts_of("in_proj_weight", {"in_proj_weight": weights.shape}, Heads())
    x = torch.randn(1, 5, 32)
    q, k = (x[0].numpy() @ part.of(weights).T for part in parts[:2])
    scores = torch.from_numpy(q[:, :8] @ k[:, :8].T / 8**0.5).softmax(dim=-1)
    _, attention = layer(x, x, x, average_attn_weights=False)
    np.testing.assert_allclose(attention[0, 0].detach(), scores, rtol=1e-4, atol=1e-6)


def test_heads_in_turn_need_their_number():
    name = "attention.query_key_value.weight"
    parts, layout, _ = split(name, (96, 32))
    assert parts == {}
    assert "pass --heads" in layout
    parts, layout, whole = split(name, (96, 32), Heads(4, None, "config.json"))
    # Head by head: 8 rows of the query, of the key, of the value.
    assert np.array_equal(parts["query"], whole.reshape(4, 3, 8, 32)[:, 0].reshape(32, 32))
    assert np.array_equal(parts["value"][:8], whole[16:24])
    assert "of each of 4 heads (config.json) in turn" in layout
    parts, layout, _ = split(name, (96, 32), Heads(5))
    assert (parts, "5 heads do not divide" in layout) == ({}, True)


def test_fewer_keys_than_queries():
    parts, _, whole = split("qkv_proj.weight", (64, 32), Heads(4, 2))
    assert {name: len(part) for name, part in parts.items()} == {
        "query": 32, "key": 16, "value": 16,
    }  # fmt: skip
    assert np.array_equal(parts["value"], whole[48:])
    assert split("qkv_proj.weight", (64, 32))[0] == {}
    assert "not split" in split("qkv_proj.weight", (64, 32))[1]


def test_gates_of_recurrent_layers_by_the_square_array():
    shapes = {"rnn.weight_hh_l0": (128, 32)}
    parts, _, whole = split("rnn.weight_ih_l0", (128, 48), **shapes)
    assert list(parts) == ["input gate", "forget gate", "cell", "output gate"]
    assert np.array_equal(parts["cell"], whole[64:96])
    parts, _, _ = split("rnn.weight_hh_l0", (96, 32))
    assert list(parts) == ["reset gate", "update gate", "new gate"]
    # Without the square array, or with one of another kind, the number of gates is unknown.
    assert split("rnn.weight_ih_l0", (128, 48))[0] == {}
    assert split("rnn.weight_hh_l1", (32, 32))[0] == {}


def test_other_fused_projections():
    parts, _, whole = split("mlp.gate_up_proj.weight", (128, 32))
    assert np.array_equal(parts["up"], whole[64:])
    assert list(split("attn.to_kv.weight", (64, 32))[0]) == ["key", "value"]
    parts, layout, _ = split("mixer.in_proj.weight", (128, 32))
    assert (parts, "not split" in layout) == ({}, True)


def fused_file(tmp_path, heads: int | None = None):
    rng = np.random.default_rng(0)
    arrays = {
        "layers.0.self_attn.in_proj_weight": rng.standard_normal((120, 40)),
        "layers.0.attention.query_key_value.weight": rng.standard_normal((120, 40)),
        "layers.0.self_attn.in_proj_bias": np.ones(120),
    }
    path = tmp_path / "w.safetensors"
    save_file({name: one.astype(np.float32) for name, one in arrays.items()}, path)
    if heads is not None:
        (tmp_path / "config.json").write_text(json.dumps({"num_attention_heads": heads}))
    return path, arrays


def test_each_part_is_a_row_with_its_layout(tmp_path):
    path, arrays = fused_file(tmp_path)
    np.savez(tmp_path / "before.npz", **arrays)
    rows = {row.name: row for row in diagnose_file(path, initial=tmp_path / "before.npz")}
    name = "layers.0.self_attn.in_proj_weight"
    assert {f"{name}[{part}]" for part in ("query", "key", "value")} < rows.keys()
    assert name not in rows
    part = rows[f"{name}[key]"]
    assert part.shape == (40, 40)
    expected = np.linalg.svd(arrays[name][40:80].astype(np.float32), compute_uv=False)
    np.testing.assert_allclose(part.values[::-1], expected, rtol=1e-5, atol=1e-6)
    assert "one after the other in its rows" in part.layout
    # Compared with the same part of the initial weights.
    assert part.initial.relative_change < 1e-6
    # Without the number of heads the other layout is unknown: the array stays whole.
    whole = rows["layers.0.attention.query_key_value.weight"]
    assert whole.shape == (120, 40)
    assert "pass --heads" in whole.layout


def test_the_number_of_heads_is_that_of_config_json(tmp_path):
    path, _ = fused_file(tmp_path, heads=5)
    names = [stored.name for stored in split_arrays(iter_weights(path), heads_of(path, None))]
    assert "layers.0.attention.query_key_value.weight[value]" in names
    asked = [stored.name for stored in split_arrays(iter_weights(path), heads_of(path, 4))]
    assert asked == names
