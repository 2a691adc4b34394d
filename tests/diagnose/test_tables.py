"""The table of `solvable diagnose` in windows of all widths."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.diagnosis import (
    Estimate,
    Exponent,
    Feature,
    MatrixDiagnosis,
)
from solvable.diagnose.outliers import Outliers
from solvable.diagnose.tables import grouped, matrix_table

KINDS = ("attention.self.query", "attention.self.key", "attention.output.dense", "output.dense")


def transformer(layers: int = 25) -> Diagnosed:
    """A hundred matrices with long names, one of them not fitted."""
    rows = []
    for layer in range(layers):
        for kind in KINDS:
            strength = Estimate(3.99, 3.88, 4.11)
            rows.append(
                MatrixDiagnosis(
                    f"encoder.layer.{layer}.{kind}.weight",
                    (1024, 4096),
                    "F32",
                    "bulk+spikes",
                    "",
                    noise=Estimate(1.0, 0.99, 1.01),
                    shrinkage=Estimate(0.1, 0.0, 0.2),
                    features=(Feature(4.1, strength, 0.9),) * 40,
                    exponent=Exponent(Estimate(2.61, 2.08, 3.14), 0.384),
                    directions=52,
                    stable_rank=3.14159,
                    outliers=(Outliers("entry", 2, (1, 2), 0.1, 5.0),),
                )
            )
    rows.append(MatrixDiagnosis("head.weight", (3, 4), "F32", "not fitted", "too small."))
    return Diagnosed("model.safetensors", tuple(rows), n_arrays=len(rows))


def lines(found: Diagnosed, width: int) -> tuple[list[str], list[str]]:
    table, dropped = matrix_table(found, width)
    stream = io.StringIO()
    Console(file=stream, width=width, color_system=None).print(table)
    return [line.rstrip() for line in stream.getvalue().splitlines()], dropped


def test_a_pipe_gets_everything():
    table, dropped = matrix_table(transformer(), None)
    shown = table.to_text().splitlines()
    assert dropped == []
    # Header, a heading per layer, a row per matrix.
    assert len(shown) == 1 + 25 + 101
    row = shown[2]
    for cell in (
        "1.00",
        "3.99 (3.88 to 4.11)",
        "2.6 (2.1 to 3.1)",
        "0.38",
        "52",
        "2 entries",
    ):
        assert cell in row
    assert "1024 x 4096" in row


@pytest.mark.parametrize("width", [60, 80, 100, 120, 160, 200])
def test_every_row_fits_in_the_window_and_is_one_line(width):
    shown, dropped = lines(transformer(), width)
    assert len(shown) == 1 + 25 + 101
    assert max(map(len, shown)) <= width
    # These columns stay wherever there is room for a name.
    assert all("bulk+spikes" in line for line in shown[2:6])
    assert ("intervals" in dropped) == (width < 200)
    assert sum("…" in line for line in shown) == 0 or width <= 80


def test_less_is_left_out_in_a_wider_window():
    left_out = [len(matrix_table(transformer(), width)[1]) for width in (60, 80, 100, 120, 200)]
    assert left_out == sorted(left_out, reverse=True)
    assert left_out[0] > left_out[-1] == 0


def test_names_that_share_their_beginning_stand_under_it():
    names = [f"model.layers.{i}.mlp.up_projection.weight" for i in range(2)]
    rest, heads = grouped([*names, "lm_head.weight"])
    assert heads == ["model.layers.0", "model.layers.1", ""]
    assert rest == ["  mlp.up_projection.weight"] * 2 + ["lm_head.weight"]
    # Short names stay whole.
    assert grouped(["layer.0.w", "layer.1.w"]) == (["layer.0.w", "layer.1.w"], ["", ""])


def test_cut_names_keep_their_ends():
    rows = (
        MatrixDiagnosis("a" * 60 + "-first", (99, 99), "F32", "bulk-decay", ""),
        MatrixDiagnosis("a" * 60 + "-second", (99, 99), "F32", "bulk-decay", ""),
    )
    shown, _ = lines(Diagnosed("w", rows, n_arrays=2), 60)
    assert "first" in shown[1]
    assert "second" in shown[2]
    assert "…" in shown[1]
