"""Students as ``MultiVectorEncoder`` of sentence-transformers, for training and encoding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from solvable.arrays import random_stream
from solvable.fitting.described_arrays import valid_content
from solvable.retrieve.students import (
    Description,
    Reader,
    StaticEncoder,
    Task,
    load_tokenizer,
    minilm_folder,
    quiet_imports,
    read_student,
    tokenize,
)

WHITE = 128
"""Number of whitened coordinates of the static student."""

TINY: dict[str, Any] = {
    "hidden_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 512,
    "max_position_embeddings": 512,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
"""Size of the tiny encoder; without dropout, so that a resumed run repeats the same numbers."""


@cache
def _modules() -> Any:
    """Define the two modules that sentence-transformers lacks: our input, and pooling to one token."""
    import torch
    from sentence_transformers.base.modules import InputModule, Module

    class Backbone(InputModule):
        """Tokenizer and token states, with the length and prompt of each task."""

        def __init__(self, network: Any, tokenizer: Any, described: Description) -> None:
            super().__init__()
            self.network, self.tokenizer, self.described = network, tokenizer, described

        def preprocess(self, inputs: Sequence[str], prompt: Any = None, **options: Any) -> Any:
            task: Task = options.get("task") or "document"
            numbers = tokenize(self.tokenizer, self.described, inputs, task)
            width = max(map(len, numbers))
            rows = torch.zeros((len(numbers), width), dtype=torch.long)
            mask = torch.zeros((len(numbers), width), dtype=torch.long)
            for row, held in enumerate(numbers):
                rows[row, : len(held)] = torch.tensor(held)
                mask[row, : len(held)] = 1
            return {"input_ids": rows, "attention_mask": mask}

        def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
            if isinstance(self.network, torch.nn.Embedding):
                states = self.network(features["input_ids"])
            else:
                states = self.network(
                    input_ids=features["input_ids"], attention_mask=features["attention_mask"]
                ).last_hidden_state
            return features | {"token_embeddings": states}

        def save(self, *_: Any, **__: Any) -> None:
            raise NotImplementedError("students are saved by `solvable.retrieve.students`")

    class PoolToOne(Module):
        """Mean of the token states as a single unit token: MaxSim is then the cosine."""

        def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
            mask = features["attention_mask"].unsqueeze(-1).float()
            mean = (features["token_embeddings"] * mask).sum(1, keepdim=True) / mask.sum(
                1, keepdim=True
            )
            unit = torch.nn.functional.normalize(mean, dim=-1)
            ones = torch.ones(unit.shape[:2], dtype=torch.bool, device=unit.device)
            return features | {"token_embeddings": unit, "attention_mask": ones}

        def save(self, *_: Any, **__: Any) -> None:
            raise NotImplementedError("students are saved by `solvable.retrieve.students`")

    return Backbone, PoolToOne


class Student:
    """A student in torch: backbone and head, read with one vector per token or per text."""

    def __init__(self, described: Description, arrays: dict[str, np.ndarray]) -> None:
        quiet_imports()
        import torch
        from sentence_transformers.base.modules import Dense

        self.described = described
        self._tokenizer_bytes = arrays["tokenizer"]
        network = _network(described.student, arrays)
        Backbone, _ = _modules()
        self.backbone = Backbone(network, load_tokenizer(self._tokenizer_bytes), described)
        width = arrays["head"].shape[1]
        self.head = Dense(
            width,
            described.dimension,
            bias=False,
            activation_function=None,
            init_weight=torch.tensor(arrays["head"]),
            module_input_name="token_embeddings",
        )

    def view(self, mode: str) -> Any:
        """Return the student as a ``MultiVectorEncoder``; both modes share their weights."""
        from sentence_transformers import MultiVectorEncoder
        from sentence_transformers.base.modules import Normalize
        from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

        _, PoolToOne = _modules()
        # The dense static student has no other weights than its head. The others pool raw states.
        if mode == "dense":
            middle = [self.head] if self.described.student == "static" else []
            parts = [self.backbone, *middle, PoolToOne()]
        else:
            unit = Normalize(module_input_name="token_embeddings")
            parts = [self.backbone, self.head, MultiVectorMask(), unit]
        return MultiVectorEncoder(modules=parts)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return all weights and the tokenizer as arrays."""
        held = {"tokenizer": self._tokenizer_bytes, "head": _numpy(self.head.linear.weight)}
        if self.described.student == "static":
            return held | {"table": _numpy(self.backbone.network.weight)}
        state = self.backbone.network.state_dict()
        return held | {f"network.{name}": _numpy(value) for name, value in state.items()}

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Replace the weights in place."""
        import torch

        with torch.no_grad():
            self.head.linear.weight.copy_(torch.tensor(arrays["head"]))
            if self.described.student != "static":
                self.backbone.network.load_state_dict(_state(arrays))


class TorchEncoder(Reader):
    """Token vectors of a trained student."""

    def __init__(self, described: Description, arrays: dict[str, np.ndarray]) -> None:
        super().__init__(described, arrays)
        self._student = Student(described, arrays).view(described.mode)

    def encode(self, texts: Sequence[str], task: Task) -> list[np.ndarray]:
        """Return one array (tokens, dimension) per text."""
        return encode(self._student, texts, task)


def encode(model: Any, texts: Sequence[str], task: Task) -> list[np.ndarray]:
    """Return one array (tokens, dimension) per text."""
    method = model.encode_query if task == "query" else model.encode_document
    return method(list(texts), batch_size=64, convert_to_numpy=True, show_progress_bar=False)


def load_encoder(path: Path) -> Reader:
    """Load a trained model for encoding; the static student needs no torch."""
    described, arrays = read_student(path)
    kind = StaticEncoder if described.student == "static" else TorchEncoder
    with valid_content(path, "a model", "Train it again."):
        return kind(described, arrays)


def new_student(described: Description, texts: Sequence[str], seed: int) -> Student:
    """Return an untrained student; ``texts`` give the token frequencies of the static one."""
    quiet_imports()
    import torch
    from safetensors.numpy import load_file

    folder = minilm_folder()
    arrays = {"tokenizer": np.frombuffer((folder / "tokenizer.json").read_bytes(), np.uint8)}
    rng = random_stream(seed, "student", described.student)
    if described.student == "static":
        rows = load_file(folder / "model.safetensors")["embeddings.word_embeddings.weight"]
        arrays["table"] = _whitened(rows, arrays["tokenizer"], described, texts)
        width = WHITE
    elif described.student == "tiny":
        from transformers import BertConfig, BertModel

        torch.manual_seed(int(rng.integers(2**31)))
        state = BertModel(BertConfig(**TINY), add_pooling_layer=False).state_dict()
        arrays |= {f"network.{name}": _numpy(value) for name, value in state.items()}
        width = TINY["hidden_size"]
    else:
        state = load_file(folder / "model.safetensors")
        kept = {
            name for name in state if not name.startswith("pooler.") and "position_ids" not in name
        }
        arrays |= {f"network.{name}": state[name] for name in kept}
        width = state["embeddings.word_embeddings.weight"].shape[1]
    head = rng.standard_normal((described.dimension, width)) / np.sqrt(width)
    arrays["head"] = head.astype(np.float32)
    return Student(described, arrays)


def _whitened(
    rows: np.ndarray, tokenizer: np.ndarray, described: Description, texts: Sequence[str]
) -> np.ndarray:
    """Return token vectors with mean 0 and covariance 1 under the token frequencies of the texts."""
    numbers = tokenize(load_tokenizer(tokenizer), described, texts, "document")
    counts = np.bincount(np.concatenate([*map(np.asarray, numbers)]), minlength=len(rows))
    weights = counts / counts.sum()
    centred = rows.astype(np.float64) - weights @ rows
    values, vectors = np.linalg.eigh(centred.T @ (weights[:, None] * centred))
    return (centred @ (vectors[:, -WHITE:] / np.sqrt(values[-WHITE:]))).astype(np.float32)


def _network(student: str, arrays: dict[str, np.ndarray]) -> Any:
    import torch
    from transformers import BertConfig, BertModel

    if student == "static":
        return torch.nn.Embedding.from_pretrained(torch.tensor(arrays["table"]), freeze=True)
    minilm = TINY | {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12}
    minilm["intermediate_size"] = 1536
    sizes = TINY if student == "tiny" else minilm
    network = BertModel(BertConfig(**sizes), add_pooling_layer=False)
    network.load_state_dict(_state(arrays))
    return network


def _state(arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    import torch

    names = [name for name in arrays if name.startswith("network.")]
    return {name.removeprefix("network."): torch.tensor(arrays[name]) for name in names}


def _numpy(value: Any) -> np.ndarray:
    return value.detach().cpu().numpy()
