"""Progress: pace and time left in words, lines in a pipe, a bar in a notebook's kernel."""

from __future__ import annotations

import io
import re
import sys
import time
from datetime import datetime

import pytest

import solvable
from solvable.errors import InvalidParameter
from solvable.progress import Pace, _written_lines, progress_bar, reporter, time_of_day


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_pace_is_that_of_the_last_five_minutes():
    clock = Clock()
    pace = Pace("tasks", clock)
    assert pace.line() == "starting"
    pace.add(40, 1000, None)  # 40 were finished before
    assert pace.line() == "40 of 1000 tasks, estimating time left"
    for _ in range(20):
        clock.now += 30
        pace.add(pace.done + 1, 1000, 3000.0)
    assert pace.per_minute == pytest.approx(2)
    assert re.fullmatch(
        r"60 of 1000 tasks, 2 a minute, 50 min 00 s left, until (\d{4}-\d\d-\d\d )?\d\d:\d\d",
        pace.line(),
    )
    # Ten workers join: the pace of the first ten minutes is forgotten.
    for _ in range(200):
        clock.now += 3
        pace.add(pace.done + 1, 1000, 100.0)
    assert pace.per_minute == pytest.approx(20, rel=0.02)
    assert pace.summary() == "260 of 1000 tasks after 20 min 00 s, 20 a minute"


def test_a_pace_below_one_a_minute_is_not_rounded_to_zero():
    clock = Clock()
    pace = Pace("tasks", clock)
    pace.add(0, 9, None)
    clock.now += 400
    pace.add(1, 9, 3200.0)
    assert pace.rate() == "0.15 a minute"


def test_time_of_day_has_a_date_unless_it_is_today():
    now = datetime(2026, 3, 1, 22, 30)
    assert time_of_day(3600, now) == "23:30"
    assert time_of_day(7200, now) == "2026-03-02 00:30"


def test_lines_at_the_start_each_minute_and_at_the_end(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with _written_lines("tasks", every=0.05) as show:
        show(0, 3, None)
        show(1, 3, 200.0)
        time.sleep(0.3)  # no task ends, lines go on
        show(3, 3, 0.0)
    lines = written.getvalue().splitlines()
    assert lines[0] == "progress: 0 of 3 tasks, estimating time left"
    assert len(lines) >= 4
    assert all(re.match(r"progress: 1 of 3 tasks, .* a minute, ", line) for line in lines[1:-1])
    assert re.fullmatch(r"progress: 3 of 3 tasks after 0 s, \d+ a minute", lines[-1])


def test_a_pipe_without_lines_and_a_closed_log_are_silent(monkeypatch):
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    with progress_bar(shown=True) as show:
        show(1, 2, None)
    with progress_bar(shown=False, lines=True) as show:
        show(1, 2, None)
    assert written.getvalue() == ""
    with progress_bar(shown=True, lines=True) as show:
        written.close()
        show(1, 2, None)


def test_work_that_is_refused_before_it_begins_writes_no_line(capsys):
    with pytest.raises(ValueError, match="refused"), _written_lines("tasks"):
        raise ValueError("refused")
    assert capsys.readouterr().err == ""


def test_progress_of_python_functions(capsys, tmp_path):
    settings = {"preset": None, "dimension": 8, "samples": [20, 30], "seeds": 1, "workers": 1}
    solvable.run("quadratic-network", progress=True, **settings)
    assert "progress: 2 of 2 tasks" in capsys.readouterr().err
    solvable.run("quadratic-network", progress=False, **settings)
    assert capsys.readouterr().err == ""
    with pytest.raises(InvalidParameter, match="progress is 'yes'; allowed: True, False, None"):
        solvable.run("quadratic-network", progress="yes", **settings)


class Handle:
    def __init__(self, shown, display_id):
        assert display_id is True
        self.shown = [shown]

    def update(self, shown):
        self.shown.append(shown)


def test_a_kernel_shows_one_bar_that_is_updated(monkeypatch):
    handles = []

    def display(shown, display_id):
        handles.append(Handle(shown, display_id))
        return handles[-1]

    monkeypatch.setattr("solvable.progress._kernel_display", lambda: display)
    with reporter(True, "fits <b>") as show:
        for done in range(101):
            show(done, 100, 1.0)
    (handle,) = handles
    # A thousand reports a second are not a thousand messages.
    assert 3 <= len(handle.shown) <= 5
    html = handle.shown[-1]._repr_html_()
    assert html.startswith(
        '<progress value="100" max="100" aria-label="finished"></progress> 100 of'
    )
    assert "<b>" not in html
    assert repr(handle.shown[-1]).startswith("100 of 100 fits <b> after 0 s")


@pytest.mark.slow
def test_a_notebook_shows_the_bar(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cells = [
        "import solvable",
        'found = solvable.run("quadratic-network", preset=None, dimension=10, samples=[40, 60], '
        "seeds=2, workers=2, progress=True)",
        'solvable.learn_features("iris", folds=2, workers=1, progress=True).learned.error < 0.2',
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in cells])
    nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": tmp_path}}
    ).execute()
    (bar,) = notebook.cells[1].outputs
    assert '<progress value="4" max="4"' in bar["data"]["text/html"]
    assert bar["data"]["text/plain"].startswith("4 of 4 tasks after")
    bar, answer = notebook.cells[2].outputs
    assert "fits after" in bar["data"]["text/plain"]
    assert answer["data"]["text/plain"] == "True"
