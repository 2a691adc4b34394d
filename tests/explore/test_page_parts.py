"""Parts of the served page: the address, colours, the newest request, and the guard."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

from solvable.errors import InvalidParameter
from solvable.explore.controls import controls
from solvable.explore.interruption import Interruptible, Unwanted
from solvable.explore.lines import theory_figures
from solvable.explore.look import DARK, page_figure
from solvable.explore.memo import WANTED
from solvable.explore.newest import Newest
from solvable.explore.runs import Runs
from solvable.explore.server import listen
from solvable.explore.values import from_address, settings_of
from solvable.frame import registry
from solvable.plots.figure import Figure, Marker, Series

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


def test_of_a_thousand_requests_few_are_computed_and_the_last_is() -> None:
    newest, computed = Newest(), []

    def ask(number: int) -> None:
        with newest.turn("page", number) as current:
            if current():
                time.sleep(0.01)
                computed.append(number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(1, 1001)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1000 in computed[-2:]
    assert len(computed) < 400


def test_lines_that_nobody_waits_for_end_between_two_predictions() -> None:
    answers = iter([True, True])
    waited_for = WANTED.set(lambda: next(answers, False))
    try:
        with pytest.raises(Unwanted):
            theory_figures(SYSTEM, {"noise": 0.123, "dimension": 77})
    finally:
        WANTED.reset(waited_for)
    assert theory_figures(SYSTEM, {"noise": 0.123, "dimension": 77}, seconds=0.1).figures


def forever(started: threading.Event) -> None:
    """Compute until somebody ends it; nothing in here asks whether it is still wanted."""
    started.set()
    while True:
        time.sleep(0.01)


def test_a_newer_request_ends_a_long_prediction_of_its_own_page() -> None:
    newest, ended = Newest(), []
    started = [threading.Event(), threading.Event()]

    def ask(place: int, page: str) -> None:
        with newest.turn(page, 1):
            try:
                newest.compute(page, 1, lambda: forever(started[place]))
            except Unwanted:
                ended.append(page)

    threads = [threading.Thread(target=ask, args=a) for a in enumerate(["one", "other"])]
    for thread, begun in zip(threads, started, strict=True):
        thread.start()
        begun.wait(10)
    # Both places are taken, and the third request gets the one of its own page.
    with newest.turn("one", 2) as current:
        assert current()
        assert newest.compute("one", 2, lambda: 7) == 7
        assert ended == ["one"]
    with newest.turn("other", 2):
        pass
    for thread in threads:
        thread.join(10)
    assert ended == ["one", "other"]
    with pytest.raises(Unwanted):
        newest.compute("one", 1, lambda: 7)


def test_a_computation_that_is_complete_is_not_ended() -> None:
    complete = Interruptible()
    assert complete.run(lambda: 3) == 3
    complete.end()
    assert sum(range(1000)) == 499_500  # nothing is raised here
    with pytest.raises(Unwanted):
        complete.run(lambda: 3)
    ended = Interruptible()
    ended.end()
    with pytest.raises(Unwanted):
        ended.run(lambda: 3)
    failing = Interruptible()
    with pytest.raises(ZeroDivisionError):
        failing.run(lambda: 1 // 0)


def test_pages_do_not_drop_requests_of_each_other() -> None:
    newest = Newest()
    for page in ("one", "other"):
        with newest.turn(page, 5) as current:
            assert current()
    with newest.turn("one", 4) as current:
        assert not current()


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
