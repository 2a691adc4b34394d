"""Low-rank adapters: names of PEFT and kohya, the product of the factors, and its learned directions."""

from __future__ import annotations

import numpy as np
import pytest

import solvable
from solvable.data.weights.in_memory import weights_in_memory
from solvable.diagnose import quick_rows
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
    quick, _ = quick_rows(source)
    assert quick.norm == pytest.approx(row.norm, rel=1e-5)
    assert quick.edge is None
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
    assert [fit.norm for fit in history.fits[1:]] == pytest.approx([history.fits[1].norm] * 2)
