"""Models of others: folders of sentence-transformers, of PyLate and of ColBERT, and MiniLM."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from solvable.errors import InvalidData
from solvable.paths import error_line
from solvable.retrieve.encoder import load_encoder
from solvable.retrieve.students import (
    MODEL_FILE_SHA256,
    Reader,
    Task,
    minilm_folder,
    quiet_imports,
)

LONGEST = 128
"""Largest number of tokens of a passage: the best of 64, 128 and 256 in the documentation."""


def load_model(model: Path | None) -> Reader | FolderEncoder:
    """Load a model file, a folder of a model, or MiniLM if none is given."""
    if model is None:
        name = {"kind": "minilm", "hash": MODEL_FILE_SHA256}
        return FolderEncoder(minilm_folder(), name)
    if model.is_dir():
        place = str(model.resolve())
        return FolderEncoder(model, {"kind": "folder", "place": place, "hash": _hash(model)})
    return load_encoder(model)


def restore_model(described: dict[str, str], file: Path) -> Reader | FolderEncoder:
    """Load the model of an index, and check that it is the one that encoded the documents."""
    kind = described["kind"]
    if kind == "folder" and not Path(described["place"]).is_dir():
        raise InvalidData(
            f"the model of this index was in {described['place']}, which is no folder. Put it "
            "back, or build the index again with --model."
        )
    where = {"minilm": None, "file": file}.get(kind, Path(described.get("place", "")))
    encoder = load_model(where)
    if encoder.model["hash"] != described["hash"]:
        name = where or "MiniLM"
        raise InvalidData(
            f"{name} is not the model that encoded the documents. Build the index again with it."
        )
    return encoder


def _hash(folder: Path) -> str:
    summed = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".json", ".safetensors", ".bin", ".txt", ".model", ".metadata"):
            summed.update(path.relative_to(folder).as_posix().encode())
            with path.open("rb") as stream:
                summed.update(hashlib.file_digest(stream, "sha256").digest())
    return summed.hexdigest()


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidData(f"{path} cannot be read as JSON ({error_line(error)}).") from None
    return content if isinstance(content, dict) else {}


class FolderEncoder:
    """A model that sentence-transformers loads: token vectors, and vectors of texts if it has them."""

    def __init__(self, folder: Path, model: dict[str, str]) -> None:
        ours, plain = (
            _json(folder / name) for name in ("config_sentence_transformers.json", "config.json")
        )
        # PyLate writes the prefixes of queries and documents, ColBERT its own architecture.
        self.multi = (
            ours.get("model_type") in ("ColBERT", "MultiVectorEncoder")
            or "query_prefix" in ours
            or "HF_ColBERT" in (plain.get("architectures") or ())
        )
        if not self.multi and not (folder / "modules.json").is_file():
            raise InvalidData(
                f"{folder} holds no model; allowed: a folder of sentence-transformers or PyLate "
                "(with modules.json), or of ColBERT (config.json with the architecture HF_ColBERT)."
            )
        quiet_imports()
        import sentence_transformers

        name = "MultiVectorEncoder" if self.multi else "SentenceTransformer"
        logging.getLogger("sentence_transformers").setLevel(logging.ERROR)
        try:
            # Classes of others, and code in the folder, are refused by the library.
            self._encoder: Any = getattr(sentence_transformers, name)(
                str(folder), local_files_only=True
            )
            self._prepare: Any = self._encoder.tokenizer
            self.tokenizer: Any = self._prepare.backend_tokenizer
        except Exception as error:
            raise InvalidData(
                f"{folder} cannot be read as a model ({error_line(error)}). Save it again with "
                "PyLate or sentence-transformers."
            ) from None
        self.model = model
        first = self._encoder[0]
        limits = (LONGEST, getattr(first, "document_length", None), self._encoder.max_seq_length)
        # Markers and a prompt take some of the tokens.
        markers = len(self._prepare(self._prompt("document"))["input_ids"])
        self.window = max(min(limit for limit in limits if limit) - markers, 1)

    def _prompt(self, task: Task) -> str:
        return self._encoder.prompts.get(task) or ""

    def both(self, texts: Sequence[str], task: Task) -> tuple[list[np.ndarray], np.ndarray | None]:
        """Return unit token vectors of each text, and unit vectors of the texts or None."""
        name = "encode_query" if task == "query" else "encode_document"
        method = getattr(self._encoder, name)
        options: dict[str, Any] = {"batch_size": 32, "show_progress_bar": False}
        if self.multi:
            return list(method(list(texts), convert_to_numpy=True, **options)), None
        rows = method(list(texts), output_value=None, convert_to_numpy=False, **options)
        tokens = [
            one["token_embeddings"][one["attention_mask"].bool()].float().cpu().numpy()
            for one in rows
        ]
        whole = np.stack([one["sentence_embedding"].float().cpu().numpy() for one in rows])
        return [unit(one) for one in tokens], unit(whole)

    def places(self, text: str, task: Task) -> np.ndarray:
        """Return first and end character of each token vector; both 0 for one without text."""
        prompt = self._prompt(task)
        cut = {} if self.multi else {"truncation": True, "max_length": self._encoder.max_seq_length}
        whole = self._prepare(prompt + text, return_offsets_mapping=True, **cut)["offset_mapping"]
        found = np.array(whole, dtype=np.int64).reshape(-1, 2)
        if self.multi:
            from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

            features = self._encoder.preprocess([text], prompt=prompt or None, task=task)
            for module in self._encoder:
                if isinstance(module, MultiVectorMask):
                    features = module(features, task=task)
            (rows,) = features["attention_mask"].bool().cpu().numpy()
            # A query is filled up with tokens without text.
            found = np.pad(found, ((0, max(len(rows) - len(found), 0)), (0, 0)))[: len(rows)][rows]
        return np.maximum(found - len(prompt), 0)


def unit(rows: np.ndarray) -> np.ndarray:
    """Scale rows to norm 1."""
    return rows / np.maximum(np.linalg.norm(rows, axis=-1, keepdims=True), 1e-12)
