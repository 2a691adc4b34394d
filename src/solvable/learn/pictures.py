"""Pictures of the strongest directions in images."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from solvable.learn.results import Learned
from solvable.plots.files import saved, write_atomically

COLUMNS = 6
"""Pictures side by side."""

CAPTION = (
    "Red pixels are brighter, blue ones darker than on average, in images that have much of the "
    "direction: the covariance of each pixel with the direction, over all images. The sign of a "
    "direction means nothing, so red and blue may be exchanged."
)
"""What is drawn."""


def draw_pictures(found: Learned) -> bytes:
    """Draw the strongest directions of the first filter as SVG.

    Parameters
    ----------
    found : Learned
        Result on images.

    Returns
    -------
    bytes
        The picture; each direction has its own scale of colour.
    """
    from matplotlib.figure import Figure

    from solvable.plots.matplotlib_backend import INK, settings

    assert found.pictures is not None
    pictures = np.asarray(found.pictures)
    columns = min(COLUMNS, len(pictures))
    lines = -(-len(pictures) // columns)
    with settings():
        drawn = Figure(figsize=(1.05 * columns, 1.25 * lines))
        for number, picture in enumerate(pictures):
            axes = drawn.add_subplot(lines, columns, number + 1)
            limit = float(np.max(np.abs(picture))) or 1.0
            axes.imshow(picture, cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest")
            axes.set_title(f"{number + 1}", fontsize=8, color=INK, pad=2.5)
            axes.set(xticks=[], yticks=[])
            axes.grid(visible=False)
            for spine in axes.spines.values():
                spine.set_visible(False)
        drawn.subplots_adjust(0, 0, 1, 0.94, wspace=0.08, hspace=0.2)
    return saved(drawn, "svg")


def write_pictures(found: Learned, directory: Path) -> list[Path]:
    """Write ``learn-filters.svg`` if the data are images.

    Parameters
    ----------
    found : Learned
        Result.
    directory : Path
        Where it goes.

    Returns
    -------
    list of Path
        The file, or nothing.
    """
    if found.pictures is None or not len(found.pictures):
        return []
    path = directory / "learn-filters.svg"
    write_atomically(path, draw_pictures(found))
    return [path]
