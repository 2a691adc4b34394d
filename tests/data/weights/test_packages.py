"""Weights in the formats of other libraries, written by the packages themselves."""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress

import numpy as np
import pytest

from solvable.data.weights.opening import open_weights
from solvable.diagnose.attention.query_key_arrays import heads_of
from solvable.errors import InvalidData, MemoryLimitExceeded


def matrix(seed=0, shape=(6, 4)):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def read_all(path):
    return {stored.name: stored.read() for stored in open_weights(path).arrays}


def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch):
    for name, package, extra in (
        ("m.onnx", "onnx", "weights"),
        ("m.h5", "h5py", "weights"),
        ("m.gguf", "gguf", "weights"),
        ("m.pt", "torch", "torch"),
    ):
        (tmp_path / name).write_bytes(b"x")
        monkeypatch.setitem(__import__("sys").modules, package, None)
        with pytest.raises(InvalidData, match=rf"pip install 'solvable\[{extra}\]'"):
            open_weights(tmp_path / name)


@pytest.fixture
def graph():
    """An ONNX graph with an initialiser, a constant, bfloat16 and integers."""
    onnx = pytest.importorskip("onnx")
    helper, numpy_helper = onnx.helper, pytest.importorskip("onnx.numpy_helper")
    half = pytest.importorskip("ml_dtypes").bfloat16
    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(matrix(1)))
    arrays = {"w": matrix(), "half": matrix(2).astype(half), "shape": np.array([2, 3])}
    stored = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    return helper.make_model(helper.make_graph([constant], "g", [], [], stored))


def test_onnx(tmp_path, graph):
    import onnx

    onnx.save(graph, tmp_path / "m.onnx")
    found = read_all(tmp_path / "m.onnx")
    np.testing.assert_array_equal(found["w"], matrix())
    np.testing.assert_array_equal(found["c"], matrix(1))
    np.testing.assert_allclose(found["half"], matrix(2), rtol=2.0**-7)
    onnx.save(
        graph, tmp_path / "e.onnx", save_as_external_data=True, location="data", size_threshold=0
    )
    opened = open_weights(tmp_path / "e.onnx")
    assert {path.name for path in opened.files} == {"e.onnx", "data"}
    np.testing.assert_array_equal(read_all(tmp_path / "e.onnx")["w"], matrix())
    (tmp_path / "data").unlink()
    with pytest.raises(InvalidData, match="which is missing"):
        read_all(tmp_path / "e.onnx")


def test_onnx_graphs_inside_of_nodes(tmp_path):
    onnx = pytest.importorskip("onnx")
    helper, numpy_helper = onnx.helper, pytest.importorskip("onnx.numpy_helper")

    def graph(name, nodes, **arrays):
        stored = [numpy_helper.from_array(array, key) for key, array in arrays.items()]
        return helper.make_graph(nodes, name, [], [], stored)

    constant = helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(matrix(1)))
    inner = graph("inner", [constant], w=matrix(2))
    branch = helper.make_node(
        "If", ["flag"], [], then_branch=inner, else_branch=graph("e", [], w=matrix(3))
    )
    loop = helper.make_node(
        "Loop", ["n"], [], name="decoder", body=graph("b", [branch], w=matrix(4))
    )
    scan = helper.make_node("Scan", [], [], num_scan_inputs=0, body=graph("s", [], w=matrix(5)))
    model = helper.make_model(graph("main", [loop, scan], w=matrix(0)))
    onnx.save(model, tmp_path / "m.onnx")
    expected = {
        "w": 0,
        "decoder.body/w": 4,
        "decoder.body/If_0.else_branch/w": 3,
        "decoder.body/If_0.then_branch/w": 2,
        "decoder.body/If_0.then_branch/c": 1,
        "Scan_1.body/w": 5,
    }
    found = read_all(tmp_path / "m.onnx")
    assert found.keys() == expected.keys()
    for name, seed in expected.items():
        np.testing.assert_array_equal(found[name], matrix(seed))


def test_onnx_graphs_that_are_nested_too_deep_are_refused(tmp_path):
    pytest.importorskip("onnx")

    def field(number, content):
        """Bytes of one field of protobuf."""
        length = len(content)
        size = bytes([length & 127 | 128, length >> 7 & 127 | 128, length >> 14])
        return bytes([number << 3 | 2]) + size + content

    graph = b""
    for _ in range(200):
        graph = field(1, field(5, field(6, graph)))  # node, attribute, graph
    (tmp_path / "m.onnx").write_bytes(field(7, graph))
    with pytest.raises(InvalidData, match="damaged or not an ONNX file"):
        open_weights(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    "place",
    ["../secret", "/etc/passwd", "a/../../secret", "linked/secret", "link", "C:/x", "", "\0"],
)
def test_onnx_data_outside_the_folder_are_refused(tmp_path, tmp_path_factory, graph, place):
    import onnx

    other = tmp_path_factory.mktemp("other")
    (other / "secret").write_bytes(bytes(10_000))
    (tmp_path / "linked").symlink_to(other)
    (tmp_path / "link").symlink_to(other / "secret")

    stored = graph.graph.initializer[0]
    stored.ClearField("raw_data")
    stored.data_location = onnx.TensorProto.EXTERNAL
    stored.external_data.add(key="location", value=place)
    onnx.save(graph, tmp_path / "m.onnx")
    opened = open_weights(tmp_path / "m.onnx")
    assert [path.name for path in opened.files] == ["m.onnx"]
    with pytest.raises(InvalidData, match="said to be in another file"):
        opened.arrays[0].read()
    # The other arrays are read nevertheless.
    assert opened.arrays[1].read().size > 0


@pytest.mark.parametrize(
    ("shape", "entries", "words"),
    [
        ((2**30, 2**10), {"length": "8"}, "needs more data"),
        ((2**30, 2**10), {"length": str(10**13)}, "needs more data"),
        ((40, 50), {"offset": "-8"}, "is damaged"),
        ((40, 50), {"length": "9" * 4000}, "is damaged"),
        ((40, 50), {"offset": str(10**15)}, "needs more data"),
    ],
)
def test_onnx_data_are_compared_with_the_size_of_their_file(tmp_path, graph, shape, entries, words):
    import onnx

    stored = graph.graph.initializer[0]
    stored.ClearField("raw_data")
    stored.ClearField("dims")
    stored.dims.extend(shape)
    stored.data_location = onnx.TensorProto.EXTERNAL
    for key, value in ({"location": "data"} | entries).items():
        stored.external_data.add(key=key, value=value)
    (tmp_path / "data").write_bytes(bytes(1000))
    onnx.save(graph, tmp_path / "m.onnx")
    with pytest.raises(InvalidData, match=words):
        open_weights(tmp_path / "m.onnx").arrays[0].read()


@pytest.fixture
def keras(tmp_path):
    """Arrays in the layouts of Keras 2 and 3."""
    h5py = pytest.importorskip("h5py")
    arrays = {
        "model_weights/dense/dense/kernel:0": matrix(),
        "model_weights/conv/conv/kernel:0": matrix(1, (3, 2, 5, 4)),
        "model_weights/multi_head_attention/query/kernel:0": matrix(2, (6, 2, 4)),
        "model_weights/multi_head_attention/attention_output/kernel:0": matrix(3, (2, 4, 6)),
        "optimizer_weights/adam/m:0": matrix(),
    }
    with h5py.File(tmp_path / "m.h5", "w") as file:
        for name, array in arrays.items():
            file.create_dataset(name, data=array, compression="gzip")
        file["elsewhere"] = h5py.ExternalLink("/etc/passwd", "/x")
        file["text"] = "hello"
    return tmp_path / "m.h5"


def test_hdf5_of_keras(keras):
    opened = open_weights(keras)
    assert opened.notes == ("Arrays of the optimiser are not read: 1.",)
    found = {stored.name: stored for stored in opened.arrays}
    assert "elsewhere" not in found
    np.testing.assert_array_equal(found["dense/dense/kernel:0"].read(), matrix())
    turned = found["conv/conv/kernel:0"]
    assert turned.shape == turned.read().shape == (4, 3, 2, 5)
    np.testing.assert_array_equal(turned.read()[1], matrix(1, (3, 2, 5, 4))[..., 1])
    query = found["multi_head_attention/query/kernel:0"]
    assert query.shape == query.read().shape == (6, 8)
    back = found["multi_head_attention/attention_output/kernel:0"]
    assert back.shape == back.read().shape == (8, 6)
    with pytest.raises(InvalidData, match="Python objects"):
        found["text"].read()


@pytest.mark.parametrize("packed", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_keras_archives(keras, tmp_path, packed):
    path = tmp_path / "m.keras"
    with zipfile.ZipFile(path, "w", packed) as archive:
        archive.writestr("config.json", "{}")
        archive.write(keras, "model.weights.h5")
    np.testing.assert_array_equal(read_all_but_text(path)["dense/dense/kernel:0"], matrix())
    with zipfile.ZipFile(path, "w", packed) as archive:
        archive.writestr("config.json", "{}")
    with pytest.raises(InvalidData, match=r"has no model\.weights\.h5"):
        open_weights(path)


def read_all_but_text(path):
    arrays = open_weights(path).arrays
    return {stored.name: stored.read() for stored in arrays if stored.name != "text"}


def test_data_that_unpack_to_more_than_the_memory_are_refused(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "m.h5", "w") as file:
        # Nothing was written: the file has two kilobytes, and the array a terabyte.
        file.create_dataset("w", shape=(10**6, 10**6), dtype="i1", chunks=(1000, 1000))
    (stored,) = open_weights(tmp_path / "m.h5").arrays
    with pytest.raises(InvalidData, match="needs more data than are stored"):
        stored.read()
    monkeypatch.setattr("solvable.numpy_files.available_bytes", lambda: 4e7)
    with zipfile.ZipFile(tmp_path / "m.keras", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.weights.h5", bytes(30_000_000))
    with pytest.raises(MemoryLimitExceeded, match="unpacks to"):
        open_weights(tmp_path / "m.keras")


def write_gguf(path, kind):
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    code = gguf.GGMLQuantizationType[kind]
    data = matrix(0, (8, 64))
    if kind in ("F32", "F16"):
        writer.add_tensor("blk.0.attn_q.weight", data.astype(kind.replace("F", "float")))
    else:
        writer.add_tensor("blk.0.attn_q.weight", gguf.quantize(data, code), raw_dtype=code)
    writer.add_tensor("blk.0.attn_k.weight", matrix(1, (4, 64)))
    for write in ("header", "kv_data", "tensors"):
        getattr(writer, f"write_{write}_to_file")()
    writer.close()
    return data


@pytest.mark.parametrize(
    ("kind", "error"),
    [("F32", 1e-7), ("F16", 1e-3), ("BF16", 1e-2), ("Q8_0", 0.01), ("Q4_0", 0.15)],
)
def test_gguf(tmp_path, kind, error):
    path = tmp_path / "m.gguf"
    data = write_gguf(path, kind)
    opened = open_weights(path)
    stored = opened.arrays[0]
    assert (stored.name, stored.shape, stored.dtype) == ("blk.0.attn_q.weight", (8, 64), kind)
    gap = np.linalg.norm(stored.read() - data) / np.linalg.norm(data)
    assert gap < error
    quantised = kind.startswith("Q")
    assert bool(opened.notes) == quantised
    assert not quantised or f"1 matrix is quantised (1 as {kind})" in opened.notes[0]
    heads = heads_of(opened, None)
    assert (heads.number, heads.keys, heads.model) == (4, 2, "llama")


@pytest.mark.parametrize("ending", ["onnx", "h5", "keras", "gguf"])
def test_a_file_cut_at_any_place_raises_nothing_else(tmp_path, ending, request):
    path = tmp_path / f"w.{ending}"
    if ending == "onnx":
        graph = request.getfixturevalue("graph")
        path.write_bytes(graph.SerializeToString())
    elif ending == "gguf":
        write_gguf(path, "Q8_0")
    else:
        content = request.getfixturevalue("keras").read_bytes()
        if ending == "keras":
            stream = io.BytesIO()
            with zipfile.ZipFile(stream, "w") as archive:
                archive.writestr("model.weights.h5", content)
            content = stream.getvalue()
        path.write_bytes(content)
    whole = path.read_bytes()
    for cut in range(0, len(whole) - 1, max(1, len(whole) // 25)):
        path.write_bytes(whole[:cut])
        with suppress(InvalidData):
            for stored in open_weights(path).arrays:
                stored.read()


@pytest.mark.parametrize("kind", ["F32", "Q8_0"])
def test_experts_of_gguf_are_read_one_by_one(tmp_path, kind):
    gguf = pytest.importorskip("gguf")
    code, data = gguf.GGMLQuantizationType[kind], matrix(0, (3, 8, 64))
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    stored = data if kind == "F32" else gguf.quantize(data, code)
    writer.add_tensor("blk.0.ffn_gate_exps.weight", stored, raw_dtype=code)
    for write in ("header", "kv_data", "tensors"):
        getattr(writer, f"write_{write}_to_file")()
    writer.close()
    found = open_weights(tmp_path / "m.gguf").arrays
    assert [one.name for one in found] == [f"blk.0.ffn_gate_exps.weight[{k}]" for k in range(3)]
    for one, member in zip(found, data, strict=True):
        assert one.shape == (8, 64)
        assert one.held == 0
        np.testing.assert_allclose(one.read(), member, atol=0.02)
