"""Eight-bit codes with scales, in the layouts of libraries that write them; other codes are refused."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import save_file

from solvable import diagnose_weights
from solvable.data.weights.opening import open_weights
from solvable.data.weights.safetensors_file import eight_bits
from solvable.errors import InvalidData

LARGEST = 448.0  # of E4M3


def signal(shape=(300, 200), strength=3.0, seed=0):
    """Noise of scale 1 and one direction."""
    rng = np.random.default_rng(seed)
    left, right = (rng.standard_normal(side) for side in shape)
    planted = strength * np.outer(left / np.linalg.norm(left), right / np.linalg.norm(right))
    return rng.standard_normal(shape) / max(shape) ** 0.5 + planted


def to_float8(values):
    """Round to the nearest code of E4M3."""
    table = eight_bits(4, 7)
    order = np.argsort(np.nan_to_num(table, nan=np.inf), kind="stable")
    sorted_table = np.nan_to_num(table[order], nan=np.inf)
    place = np.clip(np.searchsorted(sorted_table, values), 1, 254)
    below = values - sorted_table[place - 1] < sorted_table[place] - values
    return order[np.where(below, place - 1, place)].astype(np.uint8)


def save(path, arrays, **types):
    """Write a safetensors file; types names the dtype of an array whose bytes are given as uint8."""
    import json

    header, data = {}, b""
    for name, array in arrays.items():
        raw = np.ascontiguousarray(array).tobytes()
        known = {"float32": "F32", "int8": "I8", "uint8": "U8", "int32": "I32", "uint32": "U32"}
        dtype = types.get(name) or known[str(array.dtype)]
        place = [len(data), len(data) + len(raw)]
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": place}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    return path


def blocked(weights, block=128):
    """Codes and factors of square blocks, as weight_quant of DeepSeek-V3 makes them."""
    counts = [-(-side // block) for side in weights.shape]
    factors, scaled = np.empty(counts, np.float32), np.empty_like(weights)
    for row, column in np.ndindex(*counts):
        place = (
            slice(row * block, (row + 1) * block),
            slice(column * block, (column + 1) * block),
        )
        factors[row, column] = np.abs(weights[place]).max() / LARGEST
        scaled[place] = weights[place] / factors[row, column]
    return to_float8(scaled), factors


def test_blocks_of_deepseek_are_multiplied_and_their_scales_are_no_matrix(tmp_path):
    weights = signal()
    codes, factors = blocked(weights)
    types = {"w.weight": "F8_E4M3"}
    path = save(
        tmp_path / "m.safetensors", {"w.weight": codes, "w.weight_scale_inv": factors}, **types
    )
    opened = open_weights(path)
    (stored,) = opened.arrays
    # Three mantissa bits: entries are right to 1/16.
    np.testing.assert_allclose(stored.read(), weights, rtol=2.0**-4, atol=1e-3)
    assert stored.dtype == "F8_E4M3 x scales"
    assert (
        "Eight-bit codes multiplied by their scales: 1 array, weight_scale_inv (1)."
        in opened.notes[0]
    )
    (row,) = diagnose_weights(path, workers=1).matrices
    # 5 times the deviation of an outlier's strength, which is about one over the longer side's root.
    assert row.features[0].strength.value == pytest.approx(3.0, abs=5 / 300**0.5)


@pytest.mark.parametrize(
    ("names", "shape"),
    [
        (("w.weight", "w.weight_scale"), (300, 1)),  # compressed-tensors, channel by channel
        (("w.weight", "w.weight_scale"), (300, 5)),  # groups of 40 columns
        (("w.weight", "w.weight_scale"), (1,)),  # one for the tensor
        (("w.weight", "w.weight_scale"), ()),  # ModelOpt
        (("w.weight", "w.scale_weight"), (1,)),  # ComfyUI
        (("w.weight._data", "w.weight._scale"), (300, 1)),  # quanto
        (("w.weight", "w.SCB"), (300,)),  # bitsandbytes
    ],
)
def test_integer_codes(tmp_path, names, shape):
    weights = signal()
    sides = np.ones(2, int) if len(shape) < 2 else np.array(shape)
    sides = (300, 1) if shape == (300,) else tuple(sides)
    groups = weights.reshape(sides[0], -1, sides[1], 200 // sides[1])
    factors = np.abs(groups).max(axis=(1, 3)).astype(np.float32) / 127
    whole = np.repeat(np.repeat(factors, 300 // sides[0], 0), 200 // sides[1], 1)
    codes = np.rint(weights / whole).astype(np.int8)
    if names[1].endswith("SCB"):
        factors = factors * 127
    arrays = dict(zip(names, (codes, factors.reshape(shape)), strict=True))
    (stored,) = (one for one in open_weights(save(tmp_path / "m.safetensors", arrays)).arrays)
    # Codes are right to half of a step.
    assert (np.abs(stored.read() - weights) <= 0.51 * whole).all()


def test_zero_points_and_experts(tmp_path):
    rng = np.random.default_rng(0)
    codes = rng.integers(-128, 128, (3, 80, 70)).astype(np.int8)
    factors = rng.uniform(0.5, 2.0, (3, 80, 1)).astype(np.float32)
    zero = rng.integers(-5, 5, (3, 80, 1)).astype(np.int8)
    name = "mlp.experts.down_proj"
    arrays = {name: codes, f"{name}_scale": factors, f"{name}_zero_point": zero}
    opened = open_weights(save(tmp_path / "m.safetensors", arrays))
    exact = (codes.astype(float) - zero) * factors
    assert [stored.name for stored in opened.arrays] == [f"{name}[{k}]" for k in range(3)]
    for stored, member in zip(opened.arrays, exact, strict=True):
        np.testing.assert_allclose(stored.read(), member, rtol=1e-6)


def test_blocks_of_experts_are_read_one_expert_at_a_time(tmp_path):
    stack = np.stack([signal((256, 130), seed=seed) for seed in range(2)])
    pairs = [blocked(weights) for weights in stack]
    codes, factors = (np.stack(parts) for parts in zip(*pairs, strict=True))
    names = ("mlp.experts.gate_up_proj", "mlp.experts.gate_up_proj_scale_inv")
    arrays = dict(zip(names, (codes, factors), strict=True))
    opened = open_weights(save(tmp_path / "m.safetensors", arrays, **{names[0]: "F8_E4M3"}))
    for stored, weights in zip(opened.arrays, stack, strict=True):
        np.testing.assert_allclose(stored.read(), weights, rtol=2.0**-4, atol=1e-3)


def test_exponents_as_scales(tmp_path):
    codes = to_float8(np.random.default_rng(0).standard_normal((64, 64)))
    exponents = np.full((64, 2), 129, np.uint8)
    for kind in ("U8", "F8_E8M0"):  # MXFP8, twice
        types = {"w.weight": "F8_E4M3", "w.weight_scale": kind}
        path = save(
            tmp_path / "m.safetensors", {"w.weight": codes, "w.weight_scale": exponents}, **types
        )
        (stored,) = open_weights(path).arrays
        np.testing.assert_allclose(stored.read(), 4.0 * eight_bits(4, 7)[codes])


CODES = np.ones((64, 32), np.int8)
HALF = np.ones((64, 4), np.float32)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"w.weight": CODES}, "codes without their scales"),
        ({"w.weight": CODES, "w.weight_scale": np.ones((63, 1), np.float32)}, "do not fit"),
        ({"w.weight": CODES, "w.weight_scale": CODES[:, :1]}, "packed four-bit codes"),
        ({"w.weight": CODES.view(np.uint8), "w.weight_scale": HALF}, "packed four-bit codes"),
        ({"w.qweight": CODES.astype(np.int32), "w.scales": HALF, "w.qzeros": CODES}, "GPTQ or AWQ"),
        ({"w.weight_packed": CODES.astype(np.int32), "w.weight_scale": HALF}, "compressed-tensors"),
        ({"w.weight": CODES.astype(np.uint32), "w.scales": HALF, "w.biases": HALF}, "MLX"),
        (
            {
                "w.weight": CODES.reshape(-1, 1).view(np.uint8),
                "w.weight.absmax": HALF[:, 0],
                "w.weight.quant_map": HALF[:16, 0],
                "w.weight.quant_state.bitsandbytes__nf4": CODES[0].view(np.uint8),
            },
            "bitsandbytes",
        ),
        (
            {
                "mlp.experts.down_proj_blocks": CODES.view(np.uint8).reshape(4, 8, 4, 16),
                "mlp.experts.down_proj_scales": CODES[:32, :4].view(np.uint8).reshape(4, 8, 4),
            },
            "MXFP4",
        ),
    ],
)
def test_other_codes_are_refused_by_name(tmp_path, arrays, words):
    types = (
        {"w.weight_scale": "F8_E4M3"} if arrays.get("w.weight_scale", HALF).dtype == "int8" else {}
    )
    opened = open_weights(save(tmp_path / "m.safetensors", arrays, **types))
    (stored,) = (one for one in opened.arrays if len(one.shape) > 1)
    assert not stored.integral
    with pytest.raises(InvalidData, match=words):
        stored.read()
    found = diagnose_weights({**{"dense": signal((40, 40))}, **arrays}, workers=1)
    if "w.weight_scale" not in types:
        assert any(words in row.reason for row in found.refused)
        assert not found.integers


def test_float_codes_without_scales_show_by_their_size(tmp_path):
    codes, _ = blocked(signal())
    path = save(tmp_path / "m.safetensors", {"w.weight": codes}, **{"w.weight": "F8_E4M3"})
    (stored,) = open_weights(path).arrays
    with pytest.raises(InvalidData, match="codes without their scales: the largest is 448"):
        stored.read()
    # Weights that were only rounded are read.
    plain = to_float8(signal())
    path = save(tmp_path / "m.safetensors", {"w.weight": plain}, **{"w.weight": "F8_E4M3"})
    (stored,) = open_weights(path).arrays
    np.testing.assert_allclose(stored.read(), signal(), rtol=2.0**-4, atol=2.0**-9)


def test_indices_masks_and_other_arrays_are_as_before(tmp_path):
    arrays = {
        "ids": np.arange(10, dtype=np.int64).reshape(1, 10),
        "mask": np.ones((4, 4), bool),
        "weight": np.ones((4, 4), np.float32),
        "weight_scale": np.ones((4, 4), np.float32),
    }
    save_file(arrays, tmp_path / "m.safetensors")
    found = diagnose_weights(tmp_path / "m.safetensors", workers=1)
    assert len(found.integers) == 2
    assert [row.name for row in found.matrices] == ["weight", "weight_scale"]


@pytest.mark.torch
def test_codes_of_torch(tmp_path):
    torch = pytest.importorskip("torch")
    weights = torch.tensor(signal(), dtype=torch.float32)
    scale = weights.abs().amax() / LARGEST
    content = {"w.weight": (weights / scale).to(torch.float8_e4m3fn), "w.weight_scale": scale}
    torch.save(content, tmp_path / "m.pt")
    (stored,) = open_weights(tmp_path / "m.pt").arrays
    np.testing.assert_allclose(stored.read(), weights, rtol=2.0**-4, atol=2e-4)


def test_codes_of_onnx_runtime(tmp_path):
    onnx = pytest.importorskip("onnx")
    numpy_helper = pytest.importorskip("onnx.numpy_helper")
    weights = signal((60, 50))
    scale = np.float32(np.ptp(weights) / 255)
    zero = np.uint8(round(-weights.min() / scale))
    arrays = {
        "W_quantized": np.clip(np.rint(weights / scale) + zero, 0, 255).astype(np.uint8),
        "W_scale": np.array([scale]),
        "W_zero_point": np.array([zero]),
        "square_quantized": np.ones((8, 8), np.int8),
        "square_scale": np.ones(8, np.float32),
    }
    stored = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    model = onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [], stored))
    onnx.save(model, tmp_path / "m.onnx")
    found, square = open_weights(tmp_path / "m.onnx").arrays
    assert np.abs(found.read() - weights).max() <= 0.51 * scale
    with pytest.raises(InvalidData, match="fit rows and columns"):
        square.read()
