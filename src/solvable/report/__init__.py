"""Figures, tables and the one-file HTML report of a study.

Nothing heavy is imported until it is used: matplotlib, plotly and jinja2 load with the function that
needs them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from solvable.report.content import ParameterRow, ReportContent, parameter_rows, report_content
    from solvable.report.files import write_figures
    from solvable.report.html import is_report, render_report
    from solvable.report.matplotlib_backend import draw_matplotlib
    from solvable.report.numbers import format_number, format_with_error
    from solvable.report.plotly_backend import draw_plotly
    from solvable.report.recording_backend import record
    from solvable.report.tables import (
        MetricTable,
        VerdictRow,
        metric_tables,
        verdict_rows,
        verdict_summary,
    )

_HOME = {
    "MetricTable": "tables",
    "ParameterRow": "content",
    "ReportContent": "content",
    "VerdictRow": "tables",
    "draw_matplotlib": "matplotlib_backend",
    "draw_plotly": "plotly_backend",
    "format_number": "numbers",
    "format_with_error": "numbers",
    "is_report": "html",
    "metric_tables": "tables",
    "parameter_rows": "content",
    "record": "recording_backend",
    "render_report": "html",
    "report_content": "content",
    "verdict_rows": "tables",
    "verdict_summary": "tables",
    "write_figures": "files",
}

__all__ = [
    "MetricTable",
    "ParameterRow",
    "ReportContent",
    "VerdictRow",
    "draw_matplotlib",
    "draw_plotly",
    "format_number",
    "format_with_error",
    "is_report",
    "metric_tables",
    "parameter_rows",
    "record",
    "render_report",
    "report_content",
    "verdict_rows",
    "verdict_summary",
    "write_figures",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
