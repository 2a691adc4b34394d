"""``solvable diagnose``: what the spectra of stored weights say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from solvable.cli.options import Flag

if TYPE_CHECKING:
    from solvable.report.diagnose_words import Diagnosed


def diagnose(
    weights: Path,
    /,
    *,
    seed: int = 0,
    json: Flag = False,
    quiet: Flag = False,
) -> int:
    """Tell noise from learned features in the weight matrices of a file.

    For example:
      solvable diagnose model.safetensors

    Parameters
    ----------
    weights
        .safetensors, .npz or .npy; nothing is ever unpickled.
    seed
        Of the bootstraps.
    json
        Print the content of result.json and nothing else.
    quiet
        Print nothing but errors (and the JSON).
    """
    found = _fit(weights, seed)
    if not quiet:
        _tell(found)
    return 0


def _fit(path: Path, seed: int) -> Diagnosed:
    from threadpoolctl import threadpool_limits

    from solvable.analysis.diagnosing import diagnose_file
    from solvable.report.diagnose_words import Diagnosed

    with threadpool_limits(limits=1):
        rows = tuple(diagnose_file(path, seed=seed))
    return Diagnosed(path.name, rows, seed, n_arrays=len(rows))


def _tell(found: Diagnosed) -> None:
    from rich.text import Text

    from solvable.cli.diagnose_tables import matrix_table
    from solvable.cli.terminal import write
    from solvable.report import diagnose_words as words

    write(Text(f"{found.name}: {words.subject(found)}", style="bold"), "")
    if found.fitted:
        write(matrix_table(found), "")
    write(Text(words.headline(found), style="bold"))
    for phase, rows in words.counts(found):
        write(Text(f"- {words.meaning(phase, rows)}"))
    for one in words.refusals(found):
        write(Text(f"- not fitted: {one}", style="dim"))
