"""`solvable diagnose` on adapters, experts, and checkpoints with several dictionaries."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

import solvable


def test_an_adapter_alone_has_a_section_and_status_zero(tmp_path, call):
    rng = np.random.default_rng(0)
    first, second = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 90), (60, 4)))
    name = "base_model.model.q_proj.lora"
    save_file(
        {f"{name}_A.weight": first, f"{name}_B.weight": second},
        tmp_path / "adapter_model.safetensors",
    )
    (tmp_path / "adapter_config.json").write_text(json.dumps({"r": 4, "lora_alpha": 8}))
    status, said, _ = call(
        "diagnose", tmp_path, "--output", "out", "--workers", 1, "--quiet", "--json"
    )
    assert status == 0
    (row,) = json.loads(said)["matrices"]
    assert row["norm"] == pytest.approx(2 * np.linalg.norm(second @ first), rel=1e-5)
    status, said, _ = call("diagnose", tmp_path, "--output", "out", "--workers", 1)
    assert status == 0
    said = " ".join(said.split())
    assert "What do the adapters change?" in said
    assert "rank 4, times lora_alpha / r = 2: too few for a test of directions" in said
    assert "with strengths " in said
    assert "No matrix could be fitted" not in said
    assert "What was not fitted?" not in said
    # Another alpha gives other numbers, which must not come from the kept rows of this run.
    (tmp_path / "adapter_config.json").write_text(json.dumps({"r": 4, "lora_alpha": 4}))
    status, _, said = call("diagnose", tmp_path, "--output", "out", "--workers", 1)
    assert status == 2
    assert "out" in said


def test_the_layout_of_experts_is_printed(tmp_path, call):
    whole = np.random.default_rng(0).standard_normal((3, 40, 50)).astype(np.float32)
    save_file({"mlp.experts.down_proj": whole}, tmp_path / "m.safetensors")
    status, said, _ = call("diagnose", "m.safetensors", "--output", "out", "--workers", 1)
    assert status == 0
    assert "mlp.experts.down_proj[2]" in said
    assert "one array of 3 experts, split along its first axis" in " ".join(said.split())


@pytest.mark.torch
def test_a_key_chooses_averaged_weights(tmp_path, call):
    torch = pytest.importorskip("torch")
    weights = torch.tensor(np.random.default_rng(0).standard_normal((40, 50)))
    torch.save({"model": {"w": weights}, "ema": {"w": 2 * weights}}, tmp_path / "c.pt")
    norms = {}
    for key in (None, "ema"):
        words = ("diagnose", "c.pt", "--workers", 1, "--quick", "--json", "--quiet")
        status, said, _ = call(*words, *(("--key", key) if key else ()))
        assert status == 0
        content = json.loads(said)
        norms[key] = content["matrices"][0]["norm"]
        assert content["command"].endswith("--key ema") == (key == "ema")
        assert ("choose one by --key: ema" in str(content["notes"])) == (key is None)
        found = solvable.diagnose_weights("c.pt", key=key, quick=True, workers=1)
        assert found.matrices[0].norm == pytest.approx(norms[key])
    assert norms["ema"] == pytest.approx(2 * norms[None])
    assert len(list((tmp_path / "solvable-runs").iterdir())) == 2
    status, _, said = call("diagnose", "c.pt", "--key", "average", "--quiet")
    assert status == 2
    assert "--key 'average': c.pt has no array under this name; allowed: model and ema." in said
    status, _, said = call("diagnose", "c.pt", "c.pt", "--key", "ema", "--quiet")
    assert status == 2
    assert "--key was given with several checkpoints" in said
