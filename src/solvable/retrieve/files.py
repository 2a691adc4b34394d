"""Files of a training run: report, numbers, figures and one model per pipeline."""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from solvable.errors import StudyConflict
from solvable.fitting.intervals import Interval
from solvable.pages.environment import GENERATOR, drawings, page_environment, picture
from solvable.pages.result_directory import RESULT, ResultDirectory
from solvable.paths import whole_directory
from solvable.plots.files import check_names, write_atomically, write_figures
from solvable.plots.recording_backend import record
from solvable.plots.tables import Column, Table
from solvable.retrieve.figures import train_figures
from solvable.retrieve.phases import PIPELINES, stage_name
from solvable.retrieve.results import Trained
from solvable.retrieve.seed_runs import Folder
from solvable.retrieve.students import Description, save_student

REPORT, FIGURES, MODELS = "report.html", "figures", "models"
FORMAT = "solvable-retrieve-1"  # mark of a directory of `solvable retrieve train`

DIRECTORY = ResultDirectory("retrieve", "corpus", FORMAT, (REPORT, RESULT, FIGURES, MODELS))
"""Output directory: its name, and checks that it may be replaced."""


class TrainFiles(NamedTuple):
    """Paths of the files that were written."""

    report: Path
    result: Path
    models: dict[str, Path]

    def to_dict(self) -> dict[str, Any]:
        """Return the paths as text."""
        models = {name: str(path) for name, path in self.models.items()}
        return {"report": str(self.report), "result": str(self.result), "models": models}


def quality_table(found: Trained) -> Table:
    """Return the quality of each stage on each test set."""
    columns = [Column(f"nDCG@10 {test}", right=True) for test in found.tests]
    table = Table(
        "stage", *columns, Column("documents", right=True), Column("rank of S", right=True)
    )
    names = found.labels()
    lexical = [_shown(found.lexical(test)) for test in found.tests]
    table.add("BM25, for comparison", *lexical, "", "", style="dim")
    for stage in found.stages:
        held = found.of_stage(stage)
        cells = [_shown(found.quality(stage, test)) for test in found.tests]
        rank = sum(one.spectrum.effective_rank for one in held) / len(held)
        table.add(names[stage], *cells, f"{held[0].documents:,}", f"{rank:.1f}")
    return table


def _shown(held: Interval) -> str:
    return f"{held.value:.3f} ({held.lower:.3f}–{held.upper:.3f})"


def write_files(found: Trained, folder: Folder, directory: Path, *, command: str) -> TrainFiles:
    """Write report, numbers, figures and the models of the first seed in one atomic step."""
    models = {}
    with whole_directory(directory) as draft:
        content = {"format": FORMAT, "command": command} | found.to_dict()
        write_atomically(
            draft / RESULT, (json.dumps(content, indent=2, allow_nan=False) + "\n").encode()
        )
        (draft / MODELS).mkdir()
        for name in found.pipelines:
            kept = folder.find(found.request.seed, stage_name(PIPELINES[name]))
            if kept is None:
                raise StudyConflict(
                    f"{folder.path} lost the weights of pipeline {name}. Run the command again."
                )
            described = Description(
                found.request.student,
                mode=PIPELINES[name][-1].mode,
                prompts=found.request.prompts in ("finetuning", "both"),
            )
            save_student(draft / MODELS / f"{name}.safetensors", described, kept[1])
            models[name] = directory / MODELS / f"{name}.safetensors"
        write_figures(train_figures(found), draft / FIGURES)
        write_atomically(draft / REPORT, _html(found, command).encode())
    return TrainFiles(directory / REPORT, directory / RESULT, models)


def _html(found: Trained, command: str) -> str:
    from plotly.offline import get_plotlyjs

    figures = train_figures(found)
    check_names(figures)
    shown = [
        (figure, picture(figure), [call["text"] for call in record(figure).named("note")])
        for figure in figures
    ]
    return (
        page_environment("solvable.retrieve")
        .get_template("retrieve.html.jinja")
        .render(
            found=found,
            table=quality_table(found),
            shown=shown,
            generator=f"{GENERATOR} {version('solvable')}",
            command=command,
            drawings=drawings(figures),
            plotly=get_plotlyjs(),
        )
    )
