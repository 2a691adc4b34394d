"""The report of a diagnosis as one HTML file that needs no network."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from solvable.diagnose import cells, words
from solvable.diagnose.diagnosis import Curve, Estimate, Feature, MatrixDiagnosis
from solvable.diagnose.figures import spectrum_figure
from solvable.diagnose.phases import PHASES
from solvable.diagnose.result import Diagnosed
from solvable.diagnose.svg import small_picture
from solvable.plots.files import write_atomically
from solvable.study.html import GENERATOR
from solvable.study.pages import page_environment

if TYPE_CHECKING:
    from markupsafe import Markup


@dataclass(frozen=True)
class Card:
    """A matrix on the page: its picture and its words.

    Parameters
    ----------
    anchor : str
        Where links lead.
    row : MatrixDiagnosis
        What is shown.
    picture : str
        Markup of the spectrum.
    facts : list of (str, str)
        Names and values below it.
    remarks : list of str
        Sentences that are folded away.
    """

    anchor: str
    row: MatrixDiagnosis
    picture: str
    facts: list[tuple[str, str]]
    remarks: list[str]


def render_diagnose_report(found: Diagnosed, path: str | Path, *, command: str = "") -> Path:
    """Write the report of a diagnosis as one self-contained HTML file.

    Parameters
    ----------
    found : Diagnosed
        Result.
    path : str or Path
        File to write; an existing one is replaced in one step.
    command : str
        What repeats it.

    Returns
    -------
    Path
        The file: about 10 kilobytes a matrix, so a megabyte for a hundred.

    Raises
    ------
    StorageFailed
        If it cannot be written.
    """
    write_atomically(path, _html(found, command).encode())
    return Path(path)


def _html(found: Diagnosed, command: str) -> str:
    from importlib.metadata import version

    environment = page_environment("solvable.diagnose")
    environment.filters["broken"] = _broken
    return environment.get_template("diagnose.html.jinja").render(
        found=found,
        words=words,
        generator=f"{GENERATOR} {version('solvable')}",
        cells=cells,
        phases=words.counts(found),
        all_phases=PHASES,
        cards=matrix_cards(found),
        sketches=sketches(),
        command=command,
    )


def _broken(name: str) -> Markup:
    """Name that may go over to the next line after its dots and strokes, and nowhere else."""
    from markupsafe import Markup, escape

    text = str(escape(name))
    for mark in "._/":
        text = text.replace(mark, f"{mark}<wbr>")
    return Markup(text)


def matrix_cards(found: Diagnosed) -> list[Card]:
    """Every fitted matrix as it stands on the page.

    Parameters
    ----------
    found : Diagnosed
        Result.

    Returns
    -------
    list of Card
        In the order of the file.
    """
    shown = []
    for number, row in enumerate(found.matrices):
        if row.fitted:
            figure = spectrum_figure(row)
            picture = small_picture(figure, label=f"Spectrum of {row.name}: {row.phase}")
            anchor = f"matrix-{number}"
            remarks = [*words.remarks(row), figure.caption]
            shown.append(Card(anchor, row, picture, cells.facts(row), remarks))
    return shown


def sketches() -> dict[str, str]:
    """A picture of each phase, drawn from the law itself.

    Returns
    -------
    dict of str to str
        Markup by phase.
    """
    return {
        row.phase: small_picture(spectrum_figure(row), label=f"Example of {row.phase}")
        for row in example_spectra()
    }


def example_spectra(count: int = 400) -> list[MatrixDiagnosis]:
    """A spectrum of each phase without randomness: quantiles of the law that has it.

    Parameters
    ----------
    count : int
        Values of each.

    Returns
    -------
    list of MatrixDiagnosis
        In the order of the phases.

    Examples
    --------
    >>> [row.phase for row in example_spectra()][:2]
    ['random-like', 'bleeding-out']
    """
    from solvable.diagnose.fit_law import RectangularNoise

    law = RectangularNoise(0.5)
    places = (np.arange(count) + 0.5) / count
    noise = law.quantile(places)
    x = np.linspace(*law.edges, 120)
    curve, edges = Curve(x, law.density(x)), law.edges
    power = places[::-1] ** -0.6
    decay = np.exp(-1.5 * places[::-1] ** 0.7) * 1.8
    shapes: dict[str, tuple[np.ndarray, list[float], Curve | None, int]] = {
        "random-like": (noise, [], curve, 0),
        "bleeding-out": (noise, [1.84, 1.78], curve, 0),
        "bulk+spikes": (noise, [3.4, 2.7, 2.3], curve, 0),
        "bulk-decay": (decay, [], None, 0),
        "heavy-tailed": (power, [], _power_curve(power), 0),
        "rank-collapse": (np.geomspace(0.3, 3.0, 16), [], None, count - 16),
    }
    rows = []
    for phase, (values, spikes, fitted, zeros) in shapes.items():
        rows.append(
            MatrixDiagnosis(
                "example",
                (count, 2 * count),
                "F64",
                phase,
                "",
                values=np.sort(np.concatenate([np.zeros(zeros), values, spikes])),
                law=fitted,
                edges=edges if fitted is curve else None,
                features=tuple(Feature(y, Estimate(y, y, y), 1.0) for y in spikes),
                zeros=zeros,
            )
        )
    return rows


def _power_curve(values: np.ndarray) -> Curve:
    x = np.geomspace(float(values.min()), float(values.max()), 60)
    # Quantiles u^-0.6 have the density x^(-1 - 1/0.6) / 0.6 beyond 1.
    return Curve(x, x ** (-1 - 1 / 0.6) / 0.6)
