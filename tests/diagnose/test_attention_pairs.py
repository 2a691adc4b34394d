"""Query and key arrays of a file, and the position of the heads in them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from solvable import diagnose_weights
from solvable.data.weights.opening import iter_weights
from solvable.diagnose import diagnose_heads
from solvable.diagnose.attention.query_key_arrays import Heads, heads_of, named_pairs
from solvable.errors import InvalidData, InvalidParameter

D, H = 48, 16  # inputs, dimensions of a head
HEADS = 2


def spectra(rows):
    return [np.asarray(row.values) for row in rows]


def expected(query, key, heads=HEADS):
    """Singular values of each head from the whole matrices; outputs x inputs."""
    parts = zip(np.split(query, heads), np.split(key, heads), strict=True)
    return [np.linalg.svd(q.T @ k, compute_uv=False)[:H] for q, k in parts]


@pytest.fixture
def factors():
    """A query and a key of two heads, outputs x inputs."""
    return np.random.default_rng(4).standard_normal((2, HEADS * H, D)).astype(np.float32)


NAMES = [
    ("encoder.layer.0.attention.self.query.weight", "encoder.layer.0.attention.self.key.weight"),
    ("model.layers.3.self_attn.q_proj.weight", "model.layers.3.self_attn.k_proj.weight"),
    ("transformer.layer.1.attention.q_lin.weight", "transformer.layer.1.attention.k_lin.weight"),
    ("block.0.layer.0.SelfAttention.q.weight", "block.0.layer.0.SelfAttention.k.weight"),
    ("mid.attn.to_q.weight", "mid.attn.to_k.weight"),
    ("layers.0.attention.wq.weight", "layers.0.attention.wk.weight"),
    ("layers.0.Wq", "layers.0.Wk"),
    ("layers.0.W_Q", "layers.0.W_K"),
]


@pytest.mark.parametrize("names", NAMES)
def test_names_give_pairs(tmp_path, factors, names):
    query, key = factors
    shared = np.zeros((5, 4), dtype=np.float32)
    save_file({names[0]: query, names[1]: key, "value.weight": shared}, tmp_path / "w.safetensors")
    rows = list(diagnose_heads(tmp_path / "w.safetensors", heads=HEADS))
    assert [(row.query, row.key, row.head) for row in rows] == [(*names, 0), (*names, 1)]
    np.testing.assert_allclose(spectra(rows), expected(query, key), rtol=1e-4)


def test_inputs_come_first_where_names_say_so(tmp_path, factors):
    query, key = factors
    path = tmp_path / "w.npz"
    np.savez(path, **{"h/attn/query/kernel": query.T, "h/attn/key/kernel": key.T})
    rows = list(diagnose_heads(path, heads=HEADS))
    np.testing.assert_allclose(spectra(rows), expected(query, key), rtol=1e-4)
    np.savez(path, first=query.T, second=key.T)
    asked = list(diagnose_heads(path, heads=HEADS, pairs=[("first", "second")], inputs_first=True))
    np.testing.assert_allclose(spectra(asked), expected(query, key), rtol=1e-4)


@pytest.mark.parametrize(
    ("name", "turned", "by_head"),
    [
        ("h.0.attn.c_attn.weight", True, False),
        ("encoder.self_attn.in_proj_weight", False, False),
        ("blocks.0.attn.qkv.weight", False, False),
        ("layers.0.attn.Wqkv.weight", False, False),
        ("h.0.self_attention.query_key_value.weight", False, True),
    ],
)
def test_fused_arrays_are_taken_apart(tmp_path, factors, name, turned, by_head):
    query, key = factors
    value = np.random.default_rng(5).standard_normal(query.shape).astype(np.float32)
    if by_head:
        parts = [np.split(one, HEADS) for one in (query, key, value)]
        whole = np.concatenate([part[k] for k in range(HEADS) for part in parts])
    else:
        whole = np.concatenate([query, key, value])
    path = tmp_path / "w.safetensors"
    save_file({name: np.ascontiguousarray(whole.T if turned else whole)}, path)
    rows = list(diagnose_heads(path, heads=HEADS))
    np.testing.assert_allclose(spectra(rows), expected(query, key), rtol=1e-4)


def test_in_proj_is_that_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    layer = torch.nn.MultiheadAttention(D, 3, bias=False)
    state = {name: array.detach().numpy() for name, array in layer.state_dict().items()}
    save_file(state, tmp_path / "w.safetensors")
    rows = list(diagnose_heads(tmp_path / "w.safetensors", heads=3))
    # Logits of head 1 between two tokens, computed by torch: the logarithm undoes the softmax.
    tokens = torch.randn(6, 1, D)
    _, weights = layer(tokens, tokens, tokens, average_attn_weights=False)
    logits = torch.log(weights[0, 1]).detach().numpy()
    query, key = state["in_proj_weight"][16:32], state["in_proj_weight"][64:80]
    flat = tokens[:, 0].numpy()
    mine = flat @ (query.T @ key) @ flat.T / 4
    np.testing.assert_allclose(
        logits - logits.mean(1, keepdims=True), mine - mine.mean(1, keepdims=True), atol=1e-4
    )
    exact = np.linalg.svd(query.T @ key, compute_uv=False)[:16]
    np.testing.assert_allclose(rows[1].values, exact, rtol=1e-4)
    # Untrained, with torch's initialisation.
    assert {row.phase for row in rows} == {"random-like"}


def test_keys_may_be_shared_by_queries(tmp_path, factors):
    query, key = factors
    path = tmp_path / "w.npz"
    np.savez(path, **{"a.q_proj.weight": query, "a.k_proj.weight": key[:H]})
    rows = list(diagnose_heads(path, heads=HEADS))
    np.testing.assert_allclose(
        spectra(rows), expected(query, np.concatenate([key[:H]] * 2)), rtol=1e-4
    )


def test_the_number_of_heads_is_found(tmp_path, factors):
    query, key = factors
    arrays = {"a.query.weight": query, "a.key.weight": key}
    path = tmp_path / "w.safetensors"
    save_file(arrays, path)
    assert heads_of(path, None) == Heads()
    assert not list(diagnose_heads(path))
    (tmp_path / "config.json").write_text(json.dumps({"num_attention_heads": 2}))
    assert heads_of(path, None) == Heads(2, None, "config.json")
    assert len(list(diagnose_heads(path))) == 2
    save_file(arrays, path, metadata={"n_head": "1"})
    assert heads_of(path, None).number == 1
    assert heads_of(path, 2) == Heads(2, None, "--heads")
    (tmp_path / "config.json").write_text("[" * 50_000)
    save_file(arrays, path)
    assert heads_of(path, None) == Heads()


def test_a_query_without_its_key_is_reported(tmp_path, factors):
    path = tmp_path / "w.npz"
    np.savez(
        path, **{"a.q_proj.weight": factors[0], "b.k_proj.weight": factors[1], "k": factors[1]}
    )
    pairs, alone = named_pairs(list(iter_weights(path)))
    assert not pairs
    assert alone == ["a.q_proj.weight (no a.k_proj.weight)", "b.k_proj.weight (no b.q_proj.weight)"]


@pytest.mark.parametrize(
    ("pair", "heads", "words"),
    [
        (("q", "none"), 2, "there is no array 'none'; the file has q, k, narrow and three"),
        (("q", "narrow"), 2, "do not multiply: they are 32 x 48 and 24 x 48"),
        (("q", "k"), 5, "5 heads do not divide the 32 outputs"),
        (("three", "k"), 2, "has the shape (2, 3, 4)"),
        (("words", "k"), 2, "words"),
    ],
)
def test_what_is_asked_and_is_not_there(tmp_path, factors, pair, heads, words):
    query, key = factors
    path = tmp_path / "w.npz"
    np.savez(path, q=query, k=key, narrow=key[:24], three=np.zeros((2, 3, 4)))
    with pytest.raises(InvalidData, match=r".") as caught:
        list(diagnose_heads(path, heads=heads, pairs=[pair]))
    assert words in str(caught.value)


def test_heads_are_counted_from_one(tmp_path, factors):
    np.savez(tmp_path / "w.npz", q=factors[0], k=factors[1])
    with pytest.raises(InvalidParameter, match="from 1"):
        list(diagnose_heads(tmp_path / "w.npz", heads=0, pairs=[("q", "k")]))


def test_workers_change_nothing(tmp_path, factors):
    path = tmp_path / "w.npz"
    arrays = {
        f"{k}.{name}.weight": one
        for k in "ab"
        for name, one in zip(("query", "key"), factors, strict=True)
    }
    np.savez(path, **arrays)
    plain = [row.to_dict() for row in diagnose_heads(path, heads=HEADS)]
    assert plain == [row.to_dict() for row in diagnose_heads(path, heads=HEADS, workers=2)]
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def test_heads_that_are_done_are_kept(tmp_path, factors):
    path = tmp_path / "w.npz"
    kinds = dict(zip(("query", "key"), factors, strict=True))
    np.savez(path, **{f"{k}.{name}.weight": one for k in "abc" for name, one in kinds.items()})
    seen = []

    def stop(done, total, _left):
        seen.append((done, total))
        if done == 8:
            raise KeyboardInterrupt

    found = diagnose_weights(path, heads=HEADS, workers=1, progress=stop)
    # The file has six matrices and three pairs; the interrupt comes after the second pair.
    assert seen == [(done, 9) for done in range(1, 9)]
    assert not found.complete
    assert {row.pair for row in found.heads} == {"a", "b"}
    assert "interrupted after 6 of 6 arrays and 4 attention heads" in str(found)
    whole = diagnose_weights(path, heads=HEADS, workers=1)
    assert whole.complete
    assert len(whole.heads) == 6
    assert len(whole.figure("c head 1").axes) == 1


def test_a_fused_linear_layer_under_the_name_of_gpt2_is_split_by_its_shape(tmp_path):
    # nanoGPT: c_attn is a Linear of torch, with three times as many outputs as inputs.
    side = HEADS * H
    whole = np.random.default_rng(6).standard_normal((3 * side, side)).astype(np.float32)
    path = tmp_path / "w.safetensors"
    save_file({"h.0.attn.c_attn.weight": whole}, path)
    rows = list(diagnose_heads(path, heads=HEADS))
    wanted = expected(whole[:side], whole[side : 2 * side])
    np.testing.assert_allclose(spectra(rows), wanted, rtol=1e-4)
