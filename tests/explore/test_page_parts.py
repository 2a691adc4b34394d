"""Parts of the served page: the address, colours, the process that computes, and the guard."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import solvable
from solvable.errors import InvalidParameter, StudyError
from solvable.explore.controls import controls
from solvable.explore.functions import start_of
from solvable.explore.lines import _as_drawn, theory_figures
from solvable.explore.look import DARK, page_figure
from solvable.explore.nodes import FEWEST
from solvable.explore.runs import Runs
from solvable.explore.server import listen
from solvable.explore.values import from_address, presets_of, settings_of
from solvable.explore.worker import Worker
from solvable.frame import registry
from solvable.plots.figure import Figure, Marker, Series
from solvable.systems.base import System

SYSTEM = registry.load("matrix-sensing")
CONTROLS = controls(SYSTEM)


def test_an_address_sets_controls_and_names_what_it_cannot_read() -> None:
    query = "?noise=0.25&sensors=rank-one&dimension=1e3&panel=error&points=none"
    values, words, faults = from_address(SYSTEM, CONTROLS, query, {"rank_ratio": 0.2})
    assert (values["sensors"], values["dimension"], words) == (
        "rank-one", 1000, {"panel": "error", "points": "none"},
    )  # fmt: skip
    assert values["noise"] == pytest.approx(0.25)
    assert values["rank_ratio"] == pytest.approx(0.2)
    assert faults == []
    assert isinstance(values["dimension"], int)
    query = "?noise=banana&sensors=<script>&nois=1&__class__=2"
    values, _, faults = from_address(SYSTEM, CONTROLS, query, {})
    assert len(faults) == 4
    assert "banana" in faults[0]
    assert "allowed: goe, rank-one" in faults[1]
    assert "Did you mean 'noise'?" in faults[2]
    assert values == {c.name: c.default for c in CONTROLS}


def test_an_address_of_many_fields_is_not_read() -> None:
    _, _, (fault,) = from_address(SYSTEM, CONTROLS, "?" + "a=1&" * 300, {})
    assert "200 fields" in fault


def test_empty_controls_have_defaults_and_lists_are_read_as_json() -> None:
    assert settings_of({"a": None, "b": "", "c": "[1,2]", "d": 3}) == {"c": [1, 2], "d": 3}
    with pytest.raises(InvalidParameter, match="not a list"):
        settings_of({"c": "[1,"})


def colours(value: Any) -> list[str]:
    """Return all colours of six digits in a figure."""
    if isinstance(value, dict):
        return [colour for part in value.values() for colour in colours(part)]
    if isinstance(value, (list, tuple)):
        return [colour for part in value for colour in colours(part)]
    return [value] if isinstance(value, str) and value.startswith("#") else []


def luminance(rgb: tuple[int, ...]) -> float:
    parts = np.array(rgb) / 255
    linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_lines_and_texts_are_legible_on_the_dark_page() -> None:
    series = [Series(f"series {k}", [1, 2], [k, k + 1], colour=k) for k in range(9)]
    figure = Figure("f", "Title", "x", "y", series, markers=[Marker(1.5, "threshold")])
    drawn = page_figure(figure, 900, dark=True)
    lines = [trace["line"]["color"] for trace in drawn["data"] if trace["mode"] == "lines"]
    texts = [drawn["layout"]["font"]["color"], drawn["layout"]["annotations"][0]["font"]["color"]]
    assert len(lines) >= 9
    for colour in [*lines, *texts]:
        rgb = tuple(int(colour[start : start + 2], 16) for start in (1, 3, 5))
        assert (luminance(rgb) + 0.05) / (luminance(DARK) + 0.05) >= 4.5, colour


def test_a_phone_has_the_legend_below_the_axes() -> None:
    series = [Series(f"a long name of a series {k}", [1, 2], [k, 1], colour=k) for k in range(6)]
    figure = Figure("f", "Title", "x", "y", series, markers=[Marker(1.99, "at the right end")])
    wide, narrow = (page_figure(figure, width, dark=False)["layout"] for width in (900, 360))
    assert narrow["legend"]["orientation"] == "h"
    assert narrow["height"] > wide["height"]
    assert narrow["annotations"][0]["xanchor"] == "right"


WORKER_MODULE = """
import time
import solvable.systems.base as base
from solvable.systems.base import Axis, Panel, Parameters, System, Trace

class Mean(Parameters):
    samples: int = 4
    noise: float = 1.0

def predict(setting):
    while setting.noise == 9:  # never checks whether somebody waits
        time.sleep(0.01)
    print("s", end="")
    return {"square": setting.noise**2 / max(setting.samples, 1)}

system = System(
    name="mean", title="A mean", version="1", parameters=Mean, measure=lambda s, rng: {},
    predict=predict, axis=Axis("samples", "samples"),
    panels=[Panel("square", "Mean", "square", [Trace("square", "mean")])],
)
"""


@pytest.fixture
def worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    (tmp_path / "slow_mean.py").write_text(WORKER_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    made = Worker(import_module("slow_mean").system, {})
    yield made
    made.close()


def asked(noise: float, **more: Any) -> dict[str, Any]:
    return {"values": {"noise": noise, "samples": 4}, "panel": "square", "width": 800, **more}


def test_a_newer_request_kills_a_long_prediction_and_its_process(worker: Worker) -> None:
    assert len(json.loads(str(worker.ask(asked(2.0))))["figures"]) == 1
    first, found = worker._process, []
    thread = threading.Thread(target=lambda: found.append(worker.ask(asked(9.0))))
    thread.start()
    while worker.computed < 2:
        time.sleep(0.01)
    newest = json.loads(str(worker.ask(asked(3.0, n=7))))
    thread.join(10)
    assert found == [None]
    assert (newest["n"], len(newest["figures"]), newest["problem"]) == (7, 1, "")
    assert first.poll() == -signal.SIGKILL
    assert worker._process.poll() is None


def test_of_many_requests_few_are_computed_and_the_last_is(worker: Worker) -> None:
    worker.ask(asked(1.0))
    found: dict[int, str | None] = {}

    def ask(number: int) -> None:
        found[number] = worker.ask(asked(1 + number / 1000, n=number))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(1, 201)]
    for thread in threads:
        thread.start()
        time.sleep(0.001)
    for thread in threads:
        thread.join()
    assert json.loads(str(found[200]))["n"] == 200
    assert worker.computed < 100


def test_a_process_that_ends_is_named_and_replaced(worker: Worker) -> None:
    worker.ask(asked(1.0))
    thread = threading.Timer(0.5, worker._process.kill)
    thread.start()
    with pytest.raises(StudyError, match="has ended"):
        worker.ask(asked(9.0))
    assert json.loads(str(worker.ask(asked(2.0))))["problem"] == ""


def test_a_process_ends_with_its_server(worker: Worker) -> None:
    worker.ask(asked(1.0))
    assert worker._process.stdin is not None
    worker._process.stdin.close()  # as when the server is killed
    assert worker._process.wait(10) == 0


def test_a_system_that_no_process_can_import_is_named() -> None:
    system = System(
        name="own", title="Own", version="1", parameters=SYSTEM.parameters,
        measure=lambda setting, rng: {}, predict=lambda setting: {},
    )  # fmt: skip
    with pytest.raises(StudyError, match="cannot be sent to another process"):
        Worker(system, {})


def test_a_script_may_explore_its_own_system(tmp_path: Path) -> None:
    pytest.importorskip("cloudpickle")
    script = (
        WORKER_MODULE
        + """
import json
from solvable.explore.worker import Worker
worker = Worker(system, {})
answer = json.loads(worker.ask({"values": {"noise": 2.0}, "panel": "square", "width": 800}))
print(len(answer["figures"]), answer["problem"])
worker.close()
"""
    )
    (tmp_path / "script.py").write_text(script)
    ran = subprocess.run(
        [sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False,
        env=os.environ | {"PYTHONPATH": str(Path(solvable.__file__).parents[1])},
    )  # fmt: skip
    assert (ran.stdout.strip(), ran.returncode) == ("1", 0), ran.stderr


def test_a_refinement_ends_when_a_newer_request_waits() -> None:
    setting = {"noise": 0.123, "dimension": 77}
    lines = theory_figures(SYSTEM, setting, seconds=30.0, newer=lambda: True)
    assert lines.figures
    assert not lines.complete
    assert 3 <= lines.predictions <= FEWEST + 1
    whole = theory_figures(SYSTEM, setting, seconds=30.0)
    assert whole.predictions > lines.predictions


def test_a_page_opens_on_the_preset_quick_or_on_its_run() -> None:
    system = registry.load("quadratic-network")
    grid = system.presets["quick"].grid
    start = start_of(system, None, {"noise": 0.3})
    assert start["dimension"] in grid["dimension"]
    assert start["noise"] == pytest.approx(0.3)
    for name, setting in presets_of(system).items():
        for parameter, values in (system.presets[name].grid if setting else {}).items():
            assert setting[parameter] in values


@pytest.mark.parametrize("name", [listing.name for listing in registry.available()])
def test_every_preset_is_a_button(name: str) -> None:
    system = registry.load(name)
    assert set(presets_of(system)) == {*system.presets, "defaults"}


def test_a_caption_describes_what_is_drawn() -> None:
    caption = "Points: measured. Lines: predicted. Measured by hand. Histogram: all. In two words."
    line, points = (Series("s", [1.0], [1.0], kind=kind) for kind in ("line", "points"))
    shown = [
        _as_drawn(Figure("f", "t", "x", "y", series, caption)).caption
        for series in ([line], [line, points])
    ]
    assert shown == [
        "Lines: predicted. In two words.",
        "Points: measured. Lines: predicted. Measured by hand. In two words.",
    ]


def test_a_port_in_use_is_refused() -> None:
    opened = listen(None)
    with pytest.raises(InvalidParameter, match=r"cannot be used \(Address already in use\)"):
        listen(opened.getsockname()[1])
    opened.close()
    with pytest.raises(InvalidParameter, match="1 to 65535"):
        listen(70_000)


@pytest.mark.parametrize("replicates", [0, 101, 1.5, None, True, "3"])
def test_a_run_has_a_whole_number_of_replicates(tmp_path: Any, replicates: Any) -> None:
    with pytest.raises(InvalidParameter, match="replicates is"):
        Runs(SYSTEM, tmp_path).start({}, replicates)
    assert not list(tmp_path.iterdir())


def test_a_run_has_the_values_of_the_preset_along_the_axis(tmp_path: Any) -> None:
    runs = Runs(SYSTEM, tmp_path)
    study = runs.study({"noise": 0.3}, 2)
    words = runs.words(study, tmp_path / "run")
    assert study.grid["sample_ratio"] == list(SYSTEM.presets["quick"].grid["sample_ratio"])
    assert "noise=0.3" in words
    # The command makes the same study, so that it resumes the run.
    from solvable.cli.settings import parse_settings
    from solvable.verbs import study_of

    first, last = words.index("--set") + 1, words.index("--workers")
    again = study_of(SYSTEM, "none", parse_settings(words[first:last]), 2, 0)
    assert again.fingerprint == study.fingerprint
