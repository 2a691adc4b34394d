from solvable.study.grid import Study as Study
from solvable.study.predictions import Predictions as Predictions
from solvable.study.rehearsal import DryRun as DryRun
from solvable.study.rehearsal import dry_run as dry_run
from solvable.study.results import StudyResult as StudyResult
from solvable.study.results import load as load
from solvable.study.run import run_study as run_study
from solvable.study.verdict_list import Verdicts as Verdicts
