"""A matplotlib figure that shows itself in a notebook and is saved with our settings."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.figure import Figure as MatplotlibFigure

from solvable.plots.print_settings import settings


class DrawnFigure(MatplotlibFigure):
    """Figure that a notebook shows without ``%matplotlib``; fonts in its files are vectors."""

    exact = False
    """True if everything is inside the canvas, whose size is that of the files."""

    def savefig(self, fname: Any, **options: Any) -> None:
        """Save at exactly the size of the figure; pictures of pixels have 300 per inch."""
        with settings({} if self.exact else None):
            super().savefig(fname, **({"dpi": 300} | options))

    def _repr_png_(self) -> bytes:
        stream = io.BytesIO()
        with settings({} if self.exact else None):
            super().savefig(stream, format="png", dpi=150, bbox_inches="tight")
        return stream.getvalue()
