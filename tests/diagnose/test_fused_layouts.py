"""Layouts of fused query, key and value arrays, against the way each library reads them."""

from __future__ import annotations

import json

import numpy as np
import pytest

from solvable.diagnose.attention.fused_layouts import Heads, heads_in, query_key_value

NUMBER, KEYS, WIDTH, INPUTS = 8, 2, 4, 40
HIDDEN = NUMBER * WIDTH


def stored(layout, keys=NUMBER):
    """An array whose entries name part, head and dimension, laid out as the named library does."""
    parts = {
        name: np.array([[f"{name}{head}.{k}" for k in range(WIDTH)] for head in range(count)])
        for name, count in (("q", NUMBER), ("k", keys), ("v", keys))
    }
    if layout == "row":
        rows = np.concatenate([parts[name].ravel() for name in "qkv"])
    elif layout == "head":
        rows = np.stack([parts[name] for name in "qkv"], axis=1).ravel()
    else:
        groups = parts["q"].reshape(keys, NUMBER // keys, WIDTH)
        rows = np.concatenate([groups, parts["k"][:, None], parts["v"][:, None]], axis=1).ravel()
    return parts, rows


@pytest.mark.parametrize(
    ("name", "layout", "keys", "config"),
    [
        # modeling_gpt_neox, modeling_bloom, modeling_persimmon: view(heads, 3, width)
        ("query_key_value", "head", NUMBER, {"model_type": "gpt_neox", "num_attention_heads": 8}),
        ("query_key_value", "head", NUMBER, {"model_type": "bloom", "n_head": 8}),
        ("query_key_value", "head", NUMBER, {"num_attention_heads": 8}),
        # modeling_falcon: 7B has one key, 40B a key for each group, RW one for each head
        ("query_key_value", "row", 1, {"model_type": "falcon", "num_attention_heads": 8}),
        (
            "query_key_value",
            "group",
            KEYS,
            {
                "model_type": "falcon",
                "num_attention_heads": 8,
                "num_kv_heads": 2,
                "new_decoder_architecture": True,
            },
        ),
        (
            "query_key_value",
            "head",
            NUMBER,
            {"model_type": "falcon", "num_attention_heads": 8, "multi_query": False},
        ),
        # modeling_chatglm of ChatGLM2 and later
        (
            "query_key_value",
            "row",
            KEYS,
            {
                "model_type": "chatglm",
                "num_attention_heads": 8,
                "multi_query_attention": True,
                "multi_query_group_num": 2,
            },
        ),
        # modeling_phi3, modeling_internlm2, modeling_gpt_bigcode, modeling_mpt
        (
            "qkv_proj",
            "row",
            KEYS,
            {"model_type": "phi3", "num_attention_heads": 8, "num_key_value_heads": 2},
        ),
        (
            "wqkv",
            "group",
            KEYS,
            {"model_type": "internlm2", "num_attention_heads": 8, "num_key_value_heads": 2},
        ),
        ("c_attn", "row", 1, {"model_type": "gpt_bigcode", "n_head": 8}),
        (
            "c_attn",
            "head",
            NUMBER,
            {"model_type": "gpt_bigcode", "n_head": 8, "multi_query": False},
        ),
        (
            "wqkv",
            "row",
            KEYS,
            {"model_type": "mpt", "n_heads": 8, "attn_config": {"kv_n_heads": 2}},
        ),
        ("in_proj_weight", "row", NUMBER, {}),
    ],
)
def test_parts_are_those_of_the_library(name, layout, keys, config):
    parts, rows = stored(layout, keys)
    inputs = HIDDEN if name == "in_proj_weight" else INPUTS
    places = query_key_value(["attn", name], (rows.size, inputs), heads_in(config, "config.json"))
    assert not isinstance(places, str), places
    for part, indices in zip("qkv", (places.query, places.key, places.value), strict=True):
        assert rows[indices].tolist() == parts[part].ravel().tolist()


@pytest.mark.parametrize(
    ("name", "shape", "heads", "words"),
    [
        ("qkv_proj", (48, 40), Heads(), "fewer keys than queries"),
        ("qkv_proj", (96, 32), Heads(8, None, "", "codegen"), "CodeGen"),
        ("query_key_value", (96, 32), Heads(), "pass --heads"),
        ("query_key_value", (96, 32), Heads(8, None, "", "megatron"), "in megatron is not known"),
        ("query_key_value", (96, 32), Heads(5), "5 heads do not divide its 96 outputs"),
        ("wqkv", (50, 32), Heads(8, 2, "", "internlm2"), "do not divide its 50 outputs"),
        ("wqkv", (50, 32), Heads(8, 2, "config.json"), "do not fix its layout"),
        ("in_proj_weight", (50, 32), Heads(), "do not fix its layout"),
    ],
)
def test_what_is_not_clear_is_not_split(name, shape, heads, words):
    reason = query_key_value([name], shape, heads)
    assert isinstance(reason, str)
    assert reason.startswith("not split, because")
    assert words in reason


def test_grouped_arrays_of_the_heads(tmp_path):
    # Llama's layout in one array: the product of each head is that of separate arrays.
    from solvable.diagnose import diagnose_heads

    rng = np.random.default_rng(0)
    query, key, value = (rng.standard_normal((count * 8, 48)) for count in (4, 2, 2))
    tables = {"num_attention_heads": 4, "num_key_value_heads": 2}
    (tmp_path / "config.json").write_text(json.dumps(tables))
    whole = np.concatenate([query, key, value])
    np.savez(tmp_path / "w.npz", **{"a.qkv_proj.weight": whole})
    found = [row.values for row in diagnose_heads(tmp_path / "w.npz")]
    for number, values in enumerate(found):
        q, k = query.reshape(4, 8, 48)[number], key.reshape(2, 8, 48)[number // 2]
        np.testing.assert_allclose(values, np.linalg.svd(q.T @ k, compute_uv=False)[:8])
    assert len(found) == 4


def test_equal_numbers_of_heads_of_encoder_and_decoder_are_the_number():
    whisper = {"encoder_attention_heads": 6, "decoder_attention_heads": 6}
    assert heads_in(whisper, "config.json").number == 6
    assert heads_in(whisper | {"decoder_attention_heads": 8}, "config.json").number is None
