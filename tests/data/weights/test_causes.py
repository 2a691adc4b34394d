"""Files that are no weights: the cause by name, in one line, with what to do."""

from __future__ import annotations

import numpy as np
import pytest
from safetensors.numpy import save_file

from solvable.data.weights.opening import ENDINGS, open_weights
from solvable.errors import InvalidData

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 90868376\n"


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (POINTER, "is a pointer of git LFS and not the weights. Fetch them: git lfs pull"),
        (b"\n<!DOCTYPE html>\n<html><head>", "is a web page and not weights"),
        (b"<html>" + b"x" * 9000, "is a web page and not weights"),
        (b"Entry not found", "is a text and not weights; it begins with 'Entry not found'"),
        (b'{"error": "Access to the model is restricted"}', "is a text and not weights"),
        (b"PK\3\4" + b"x" * 200, "is cut: the end of its archive is missing"),
    ],
)
def test_the_cause_is_named(tmp_path, ending, content, words):
    path = tmp_path / f"model{ending}"
    path.write_bytes(content)
    with pytest.raises(InvalidData, match=words) as caught:
        open_weights(path)
    assert "\n" not in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("ending", ["part", "incomplete", "crdownload"])
def test_unfinished_downloads_are_named(tmp_path, ending):
    path = tmp_path / f"model.safetensors.{ending}"
    path.write_bytes(b"x")
    with pytest.raises(InvalidData, match=r"an unfinished download.*Finish it"):
        open_weights(path)


def moments(rows=40):
    rng = np.random.default_rng(0)
    first = rng.standard_normal((rows, 50)).astype(np.float32)
    return {"exp_avg": first, "exp_avg_sq": first**2}


def refused(path):
    with pytest.raises(
        InvalidData, match=r"averages of an optimiser .* Pass the file of the model"
    ):
        open_weights(path)


def test_a_file_of_adams_moments_is_named(tmp_path):
    for form in ("0.{}", "{}.layers.0.weight", "optimizer.state.0.{}", "model.layers.0.weight.{}"):
        path = tmp_path / "m.safetensors"
        save_file({form.format(name): array for name, array in moments().items()}, path)
        refused(path)


@pytest.mark.torch
def test_the_file_of_an_optimiser_of_torch_is_named(tmp_path):
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(50, 40)
    for kind in (torch.optim.AdamW, torch.optim.SGD):
        settings = {"momentum": 0.9} if kind is torch.optim.SGD else {"amsgrad": True}
        optimiser = kind(module.parameters(), lr=0.1, **settings)
        module(torch.ones(2, 50)).sum().backward()
        optimiser.step()
        torch.save(optimiser.state_dict(), tmp_path / "optimizer.pt")
        refused(tmp_path / "optimizer.pt")
        # Next to weights under names that are not known, they are left out.
        content = {"net_g": module.state_dict(), "optim_g": optimiser.state_dict()}
        torch.save(content, tmp_path / "both.pt")
        opened = open_weights(tmp_path / "both.pt")
        assert {stored.name for stored in opened.arrays if stored.is_matrix} == {"net_g.weight"}
        assert opened.notes[-1].startswith("Arrays of the optimiser are not read: ")


def test_weights_with_similar_names_are_read(tmp_path):
    arrays = {"optimism.weight": np.ones((3, 4)), "layers.0.exp_avg_pool.weight": np.ones((3, 4))}
    save_file(arrays, tmp_path / "m.safetensors")
    assert len(open_weights(tmp_path / "m.safetensors").arrays) == 2
