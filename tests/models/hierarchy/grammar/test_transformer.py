"""The transformer on strings (torch)."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from solvable.errors import InvalidParameter, NotConverged
from solvable.models.hierarchy.grammar.learner.transformer import TransformerClassifier
from solvable.models.hierarchy.target import RandomHierarchy

TARGET = RandomHierarchy(vocabulary=4, rules=2, branching=2, depth=2, seed=0)
SMALL = {"width": 16, "heads": 2, "layers": 1, "random_state": 0}


def test_the_message_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    X, y = TARGET.sample(20, 0)
    with pytest.raises(InvalidParameter, match="Install it"):
        TransformerClassifier().fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"width": 10, "heads": 4}, "width is 10 with 4 heads; allowed: a multiple"),
        ({"layers": 0}, "layers is 0"), ({"readout": "first"}, "readout .*first"),
        ({"learning_rate": -1}, "learning_rate is -1"), ({"heads": 0}, "heads is 0"),
        ({"device": None}, "device is None; allowed: auto"),
    ],
)  # fmt: skip
def test_bad_settings(settings, message):
    X, y = TARGET.sample(20, 0)
    with pytest.raises(InvalidParameter, match=message):
        TransformerClassifier(**settings).fit(X, y)


@pytest.mark.torch
@pytest.mark.parametrize("readout", ["mean", "last"])
def test_it_learns_a_small_grammar(readout):
    pytest.importorskip("torch")
    X, y = TARGET.sample(200, 0)
    model = TransformerClassifier(
        width=16, readout=readout, learning_rate=3e-3, max_epochs=40, random_state=0
    ).fit(X, y)
    assert model.score(*TARGET.sample(500, 1)) > 0.9
    assert model.loss_curve_[-1] <= 0.01 or model.n_iter_ == 40


@pytest.mark.torch
def test_positions_and_masked_leaves_are_seen():
    pytest.importorskip("torch")
    X, y = TARGET.sample(60, 0)
    model = TransformerClassifier(**SMALL, max_epochs=2).fit(X, y)
    assert model.network_["symbols"].weight.shape == (5, 16)
    masked = X.astype(int)
    masked[:, -1] = -1
    for other in (X[:, ::-1], masked):
        assert np.abs(model.predict_proba(other) - model.predict_proba(X)).max() > 1e-4


@pytest.mark.torch
def test_the_global_stream_of_torch_is_left_alone():
    torch = pytest.importorskip("torch")
    X, y = TARGET.sample(60, 0)
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    TransformerClassifier(**SMALL, max_epochs=1).fit(X, y)
    assert torch.equal(torch.rand(2), expected)


@pytest.mark.torch
def test_divergence_and_devices_are_reported():
    pytest.importorskip("torch")
    X, y = TARGET.sample(60, 0)
    with pytest.raises(NotConverged, match="training diverged in epoch"):
        TransformerClassifier(**SMALL, learning_rate=1e30).fit(X, y)
    with pytest.raises(InvalidParameter, match="device is 'none'"):
        TransformerClassifier(**SMALL, device="none").fit(X, y)
