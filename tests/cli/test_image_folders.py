"""`solvable learn` and `predict` on folders of PNG files."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
from PIL import Image
from sklearn.datasets import load_digits


def test_learn_and_predict_folders_of_images(call, few, tmp_path):
    digits = load_digits()
    chosen = np.flatnonzero(digits.target < 2)[:60]
    for i in chosen:
        folder = tmp_path / "digits" / ("zero", "one")[digits.target[i]]
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.repeat(np.repeat(digits.images[i] * 15, 2, axis=0), 2, axis=1)
        Image.fromarray(pixels.astype(np.uint8)).save(folder / f"{i}.png")
    options = ("--image-size", "8", "--colour", "grey", "--folds", 2, "--workers", 1)
    status, printed, said = call("learn", "digits/", *options, "--output", "out")
    assert status == 0, said
    assert "60 of 60 images were resized to 8 x 8 pixels" in " ".join(printed.split())
    result = json.loads((tmp_path / "out" / "result.json").read_text())
    assert result["image_shape"] == [8, 8]
    assert "--image-size 8 --colour grey" in result["command"]
    assert result["methods"][0]["error"] < 0.1
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "predictions.csv").read_text())))
    assert all(row["file"].startswith(row["target"] + "/") for row in rows)
    assert len({row["file"] for row in rows}) == 60

    status, printed, said = call("predict", "out", "digits/zero")
    assert status == 0, said
    told = list(csv.DictReader(io.StringIO(printed)))
    assert [row["file"] for row in told] == sorted(row["file"] for row in told)
    assert np.mean([row["predicted"] == "zero" for row in told]) > 0.9

    spoilt = tmp_path / "digits" / "one" / "spoilt.png"
    spoilt.write_bytes(b"\x89PNG\r\n\x1a\n")
    status, _, said = call("learn", "digits/", *options)
    assert status == 2
    assert "one/spoilt.png" in said
    assert "Traceback" not in said
