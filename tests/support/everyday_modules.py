"""Everyday torch modules as functions of their width."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn
F = nn.functional


class ResidualBlock(nn.Module):
    """Two convolutions with batch normalisation, around which the input is added."""

    def __init__(self, width):
        super().__init__()
        self.first, self.second = (nn.Conv2d(width, width, 3, padding=1) for _ in range(2))
        self.norms = nn.ModuleList(nn.BatchNorm2d(width) for _ in range(2))

    def forward(self, x):
        h = F.relu(self.norms[0](self.first(x)))
        return F.relu(x + self.norms[1](self.second(h)))


class SwiGLU(nn.Module):
    """Gated layer."""

    def __init__(self, width):
        super().__init__()
        self.gate, self.up = (nn.Linear(width, 4 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(4 * width, width, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Recurrent(nn.Module):
    """LSTM with a readout of its last state."""

    def __init__(self, width):
        super().__init__()
        self.cell, self.readout = nn.LSTM(12, width, batch_first=True), nn.Linear(width, 10)

    def forward(self, x):
        return self.readout(self.cell(x)[0][:, -1])


class Bag(nn.Module):
    """Mean of embeddings, one hidden layer, a readout."""

    def __init__(self, width):
        super().__init__()
        self.tokens, self.hidden = nn.Embedding(100, width), nn.Linear(width, width)
        self.readout = nn.Linear(width, 10)

    def forward(self, x):
        return self.readout(F.relu(self.hidden(self.tokens(x).mean(1))))


class UNet(nn.Module):
    """Down, up, and a concatenation."""

    def __init__(self, width):
        super().__init__()
        self.top = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(2 * width, width, 2, stride=2)
        self.join, self.readout = nn.Conv2d(2 * width, width, 3, padding=1), nn.Conv2d(width, 1, 1)

    def forward(self, x):
        top = F.relu(self.top(x))
        joined = torch.cat([top, self.up(F.relu(self.down(top)))], 1)
        return self.readout(F.relu(self.join(joined))).flatten(1).mean(1)


class Experts(nn.Module):
    """Two of four experts by a gate; their weights are bare parameters."""

    def __init__(self, width):
        super().__init__()
        self.enter, self.route = nn.Linear(20, width), nn.Linear(width, 4)
        self.inner = nn.Parameter(torch.randn(4, width, 2 * width) / width**0.5)
        self.outer = nn.Parameter(torch.randn(4, 2 * width, width) / (2 * width) ** 0.5)
        self.readout = nn.Linear(width, 10)

    def forward(self, x):
        h = self.enter(x)
        shares = F.softmax(self.route(h), -1)
        top, places = shares.topk(2, -1)
        mask = torch.zeros_like(shares).scatter(-1, places, top)
        each = torch.einsum("bi,eih->beh", h, self.inner)
        each = torch.einsum("beh,ehi->bei", F.relu(each), self.outer)
        return self.readout(h + (mask[..., None] * each).sum(1))


class Language(nn.Module):
    """Two transformer blocks with heads that grow; the readout shares the weights of the embedding."""

    def __init__(self, width):
        super().__init__()
        self.tokens = nn.Embedding(50, width)
        self.places = nn.Parameter(0.02 * torch.randn(8, width))
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width, 4, 4 * width, dropout=0.0, batch_first=True, norm_first=True
            )
            for _ in range(2)
        )
        self.norm, self.readout = nn.LayerNorm(width), nn.Linear(width, 50, bias=False)
        self.readout.weight = self.tokens.weight

    def forward(self, x):
        h = self.tokens(x) + self.places
        for block in self.blocks:
            h = block(h)
        return self.readout(self.norm(h))


class Attention(nn.Module):
    """Attention written out, with bare weights; the number on the scores depends on the heads' size."""

    def __init__(self, width, power=0.5, before=False):
        super().__init__()
        self.q, self.k, self.v = (nn.Parameter(torch.randn(6, width) / 6**0.5) for _ in range(3))
        self.o = nn.Parameter(torch.randn(width, 3) / width**0.5)
        self.number, self.before = width**-power, before

    def forward(self, x):
        q, k, v = x @ self.q, x @ self.k, x @ self.v
        if self.before:
            scores = (q * self.number) @ k.transpose(-1, -2)
        else:
            scores = q @ k.transpose(-1, -2) * self.number
        return F.softmax(scores, -1) @ v @ self.o


class Multiplied(nn.Module):
    """A network whose weights have entries of order one, and numbers in front."""

    def __init__(self, width, kind):
        super().__init__()
        self.first = nn.Parameter(torch.randn(width, 20))
        self.second = nn.Parameter(torch.randn(width, width))
        self.third = nn.Parameter(torch.randn(5, width))
        self.scale = {"ntk": width**-0.5, "mean-field": 1 / width}[kind]

    def forward(self, x):
        width = self.first.shape[0]
        h = torch.relu(F.linear(x, self.first) / math.sqrt(20))
        h = torch.relu(h @ (self.second.T * width**-0.5))
        return F.linear(h, self.third) * self.scale


def mlp(width):
    """Two hidden layers."""
    return nn.Sequential(nn.Linear(20, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                         nn.Linear(width, 10))  # fmt: skip


def mlp_with_norms(width):
    """Two hidden layers with layer norms."""
    return nn.Sequential(
        nn.Linear(20, width), nn.LayerNorm(width), nn.GELU(), nn.Linear(width, width),
        nn.LayerNorm(width), nn.GELU(), nn.Linear(width, 10),
    )  # fmt: skip


def convnet(width):
    """Two convolutions, pooling, and a readout."""
    return nn.Sequential(
        nn.Conv2d(3, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1), nn.BatchNorm2d(2 * width), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * width, 10),
    )  # fmt: skip


def block(width):
    """Transformer block whose heads keep their size of 16."""
    return nn.TransformerEncoderLayer(width, width // 16, 4 * width, dropout=0.0, batch_first=True)


def linear(width):
    """One layer from the width to the width."""
    return nn.Linear(width, width)


EVERYDAY = {
    "residual block": ResidualBlock,
    "transformer block": block,
    "swiglu": SwiGLU,
    "lstm": Recurrent,
    "convnet": convnet,
    "mlp with layer norm": mlp_with_norms,
    "embedding classifier": Bag,
    "u-net block": UNet,
    "mixture of experts": Experts,
    "plain linear": linear,
}
