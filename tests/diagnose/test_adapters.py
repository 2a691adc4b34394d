"""Low-rank adapters: names of PEFT and kohya, the product of the factors, and its learned directions."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

import solvable
from solvable.data.weights.in_memory import weights_in_memory
from solvable.diagnose import diagnose_file, words
from solvable.diagnose.adapters import joined_adapters


def adapter(strengths=(), rank=16, sides=(120, 200), seed=0):
    """Factors of independent entries, and planted directions in dimensions of their own."""
    rng = np.random.default_rng(seed)
    outputs, inputs = sides
    first = rng.standard_normal((rank, inputs)) / inputs**0.5
    second = rng.standard_normal((outputs, rank)) / outputs**0.5
    for k, strength in enumerate(strengths):
        first[k] *= strength**0.5
        second[:, k] *= strength**0.5
    return first, second


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("q_proj.lora_A.weight", "q_proj.lora_B.weight"),
        ("q_proj.lora_A.default.weight", "q_proj.lora_B.default.weight"),
        ("embed_tokens.lora_embedding_A", "embed_tokens.lora_embedding_B"),
        ("down.lora_down.weight", "down.lora_up.weight"),
    ],
)
def test_the_numbers_are_those_of_the_product(one, other):
    first, second = adapter((6.0, 4.0))
    source = {f"model.0.{one}": first, f"model.0.{other}": second, "dense": np.eye(40)}
    found = solvable.diagnose_weights(source)
    row, _ = found.matrices
    exact = np.linalg.svd(second @ first, compute_uv=False)
    assert row.shape == (120, 200)
    assert row.norm == pytest.approx(np.linalg.norm(exact))
    assert row.largest == pytest.approx(exact[0])
    assert row.stable_rank == pytest.approx((exact**2).sum() / exact[0] ** 2)
    assert "rank 16" in row.reason
    assert "2 directions are above" in row.reason
    assert not found.attention
    assert not found.heads
    quick, _ = diagnose_file(source, laws=False)
    assert quick.norm == pytest.approx(row.norm)
    assert "adapter" in quick.reason


def test_untrained_small_and_convolutional_adapters():
    first, second = adapter()
    rows = solvable.diagnose_weights(
        {
            "a.lora_A.weight": first,
            "a.lora_B.weight": 0 * second,
            "b.lora_A.weight": first[:2],
            "b.lora_B.weight": second[:, :2],
            "c.lora_A.weight": first[:, :180].reshape(16, 20, 3, 3),
            "c.lora_B.weight": second.reshape(120, 16, 1, 1),
            "d.lora_A.weight": first,  # without a partner
            "e.lora_A.weight": np.where(first > 0.1, np.nan, first),
            "e.lora_B.weight": second,
        }
    ).matrices
    assert [row.name[0] for row in rows] == list("abcde")
    assert "zero" in rows[0].reason
    assert not rows[0].norm
    assert "too few" in rows[1].reason
    assert rows[1].norm > 0
    assert rows[2].shape == (120, 180)
    assert "0 directions" in rows[2].reason
    assert rows[3].name == "d.lora_A.weight"
    assert "16 singular values" in rows[3].reason
    assert "not finite" in rows[4].reason


def test_only_factors_that_multiply_are_joined():
    first, second = adapter()
    arrays = weights_in_memory(
        {"a.lora_A.weight": first, "a.lora_B.weight": second[:, :8], "b.flora_A.weight": first}
    ).arrays
    assert joined_adapters(arrays) == list(arrays)


def test_a_query_under_an_adapter_has_its_key():
    rng = np.random.default_rng(0)
    names = ("layers.0.q_proj.base_layer.weight", "layers.0.k_proj.weight")
    found = solvable.diagnose_weights(
        {name: rng.standard_normal((64, 64)) for name in names}, heads=2
    )
    assert len(found.heads) == 2
    assert not found.attention


def test_an_adapter_is_followed_along_its_checkpoints():
    first, second = adapter((6.0,))
    turn = np.linalg.qr(np.random.default_rng(1).standard_normal((16, 16)))[0]
    series = {
        step: {"q.lora_A.weight": left @ first, "q.lora_B.weight": second @ right * size}
        for step, (left, right, size) in enumerate(
            [(np.eye(16), np.eye(16), 0.5), (np.eye(16), np.eye(16), 1.0), (turn, turn.T, 1.0)]
        )
    }
    found = solvable.diagnose_checkpoints(series)
    (history,) = found.histories
    # A rotation between the factors does not change their product.
    assert history.changes[1].last == pytest.approx(0.0, abs=1e-6)
    assert history.changes[0].last == pytest.approx(1.0)  # of its own norm
    assert history.values("norm")[1:] == pytest.approx([history.values("norm")[1]] * 2)


def saved(folder, modules, **configuration):
    """A folder as PEFT saves it."""
    arrays = {}
    for seed, name in enumerate(modules):
        first, second = adapter((6.0, 4.0), seed=seed)
        arrays |= {f"base_model.model.{name}.lora_A.weight": first.astype(np.float32)}
        arrays |= {f"base_model.model.{name}.lora_B.weight": second.astype(np.float32)}
    save_file(arrays, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"peft_type": "LORA", **configuration}))
    return folder


def size(seed=0):
    """Norm of the product of the factors, without their number."""
    first, second = adapter((6.0, 4.0), seed=seed)
    return np.linalg.norm(second @ first)


@pytest.mark.parametrize(
    ("configuration", "factors"),
    [
        ({"lora_alpha": 32, "r": 16}, (2.0, 2.0)),
        ({"lora_alpha": 32, "r": 16, "use_rslora": True}, (8.0, 8.0)),
        # r of a module with a pattern is the rank of its factors, whatever the configuration states.
        ({"lora_alpha": 32, "r": 8, "rank_pattern": {"q_proj": 16}}, (2.0, 2.0)),
        ({"lora_alpha": 32, "alpha_pattern": {"v_proj": 8}}, (2.0, 0.5)),
        ({"lora_alpha": 32, "alpha_pattern": {"0.attn.v_proj": 8, "proj": 1}}, (2.0, 0.5)),
        ({"lora_alpha": 32, "alpha_pattern": {"^attn.v_proj": 8}}, (2.0, 2.0)),
        ({"lora_alpha": 32, "alpha_pattern": {"(a+)+b": 8, "v_proj": 8}}, (None, 0.5)),
        ({"lora_alpha": "32"}, (None, None)),
        ({"lora_alpha": float("inf")}, (None, None)),
        ({}, (None, None)),
    ],
)
def test_the_number_of_peft_is_applied(tmp_path, configuration, factors):
    folder = saved(tmp_path, ("layers.0.attn.q_proj", "layers.0.attn.v_proj"), **configuration)
    for source in (folder, folder / "adapter_model.safetensors"):
        rows = solvable.diagnose_weights(source, workers=1).matrices
        for seed, (row, factor) in enumerate(zip(rows, factors, strict=True)):
            assert row.norm == pytest.approx((factor or 1.0) * size(seed), rel=1e-5)
            assert ("without its factor lora_alpha / r" in row.reason) == (factor is None)
        quick = solvable.diagnose_weights(source, quick=True, workers=1).matrices
        assert [row.norm for row in quick] == pytest.approx([row.norm for row in rows], rel=1e-5)


def test_the_alpha_of_kohya_is_applied(tmp_path):
    first, second = (part.astype(np.float32) for part in adapter((6.0, 4.0)))
    arrays = {
        "lora_unet_q.lora_down.weight": first,
        "lora_unet_q.lora_up.weight": second,
        "lora_unet_q.alpha": np.array(8.0, np.float16),
    }
    save_file(arrays, tmp_path / "m.safetensors")
    found = solvable.diagnose_weights(tmp_path / "m.safetensors", workers=1)
    (row,) = found.matrices
    assert row.norm == pytest.approx(0.5 * size(), rel=1e-5)
    assert "times lora_alpha / r = 0.5" in row.reason
    assert len(found.rows) == 1


def test_adapters_have_a_section(tmp_path):
    folder = saved(tmp_path, ("q_proj", "v_proj"), lora_alpha=32)
    found = solvable.diagnose_weights(folder, workers=1)
    (text,) = (
        rows for title, rows in words.sections(found) if title == "What do the adapters change?"
    )
    exact = np.linalg.svd(np.multiply(2, np.matmul(*adapter((6.0, 4.0))[::-1])), compute_uv=False)
    assert any(
        line.startswith("base_model.model.q_proj[lora_B lora_A]: norm ")
        and "rank 16, times lora_alpha / r = 2: 2 directions are above" in line
        and line.endswith(f"with strengths {exact[0]:.1f} and {exact[1]:.2f}.")
        for line in text
    )
    assert words.REFUSED not in dict(words.sections(found))
    assert "No matrix could be fitted" not in f"{words.answer(found)} {words.headline(found)}"
    assert words.headline(found) == "Of 2 matrices: 2 low-rank adapters."
