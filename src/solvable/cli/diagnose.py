"""``solvable diagnose``: what the spectra of stored weights say."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from solvable.cli.settings import Flag

if TYPE_CHECKING:
    from solvable.diagnose.attention.heads_of_file import AttentionRequest


def diagnose(
    weights: Path,
    /,
    *,
    initial: Path | None = None,
    heads: int | None = None,
    pair: list[tuple[str, str]] | None = None,
    inputs_first: Flag = False,
    seed: int = 0,
    workers: int | None = None,
    output: Path | None = None,
    json: Flag = False,
    quiet: Flag = False,
) -> int:
    """Tell noise from learned features in the weight matrices of a file.

    For example:
      solvable diagnose model.safetensors
      solvable diagnose model.safetensors --initial before.safetensors
      solvable diagnose weights.npz --output diagnosis --json > rows.json
      solvable diagnose gpt.safetensors --heads 12
      solvable diagnose weights.npz --pair W_Q W_K --heads 8

    WEIGHTS is a .safetensors, .npz or .npy file; nothing in it is ever executed.
    Save scikit-learn's coefs_ with numpy.savez, a state dict of torch with
    safetensors.torch.save_file. The spectrum of each matrix is explained as a
    bulk of noise and signals beyond it, or as a power law, or as neither; each
    law is tested before it is believed. Told are the phase with its lead over
    the runner-up, noise, shrinkage, learned features with intervals, tail
    exponent, and what a cut at the edge of the noise would keep. No data are needed;
    the effect of a cut on the loss is to be measured on held-out data.

    Where names say query and key, the product query^T key of each attention head
    is a matrix of its own: which of its directions were learned, and is there
    noise of the start or noise that a penalty has cut?

    The output directory holds report.html and result.json. Exit status 1 if no
    matrix could be fitted.

    Parameters
    ----------
    weights
        File of weights.
    initial
        The weights before training, under the same names: what has changed?
    heads
        Attention heads. [default: from the file, or config.json beside it]
    pair
        Names of a query and its key instead of those that names tell; repeatable.
    inputs_first
        Arrays of --pair are (inputs, outputs), as in GPT-2; torch is the reverse.
    seed
        Of the bootstraps.
    workers
        Local processes. [default: one per core]
    output
        Directory. [default: solvable-runs/diagnose-NAME-FINGERPRINT]
    json
        Print the content of result.json and nothing else.
    quiet
        Print nothing but errors (and the JSON).
    """
    from solvable.arrays import check_integer
    from solvable.cli.terminal import note, progress_bar, status_line, write, write_json
    from solvable.diagnose.answer_text import diagnosis_text
    from solvable.diagnose.attention.heads_of_file import AttentionRequest
    from solvable.diagnose.matrices_of_file import announced
    from solvable.diagnose.report import reserved_directory, write_files
    from solvable.study.dispatch import count_workers
    from solvable.verbs import diagnose_weights

    check_integer("--seed", seed, 0)
    lanes = count_workers(workers)
    request = AttentionRequest(heads, tuple(pair or ()), inputs_first)
    with status_line("reading", shown=not quiet):
        header = announced(weights, initial, request, lanes)
        directory, fingerprint = reserved_directory(
            output, weights, initial, f"{seed}{header.attention}"
        )
    if not quiet:
        note(header.text)
    with progress_bar(shown=not quiet) as show:
        found = diagnose_weights(
            weights,
            initial=initial,
            heads=heads,
            pairs=pair or (),
            inputs_first=inputs_first,
            seed=seed,
            workers=lanes,
            progress=show,
        )
    with status_line("writing report", shown=not quiet):
        command = _command(weights, initial, seed, request)
        files, content = write_files(found, directory, command=command, fingerprint=fingerprint)
    if json:
        write_json(content | {"files": files.to_dict()})
    elif not quiet:
        write(*diagnosis_text(found, files, sys.stdout))
    if not found.complete:
        raise KeyboardInterrupt
    # 1: the file was read, and no matrix in it could be fitted.
    return 0 if found.fitted or any(row.fitted for row in found.heads) else 1


def _command(weights: Path, initial: Path | None, seed: int, request: AttentionRequest) -> str:
    """Words that repeat what was done; only what differs from the defaults is spelled out."""
    words = ["solvable", "diagnose", str(weights)]
    words += ["--initial", str(initial)] if initial else []
    words += ["--heads", str(request.heads)] if request.heads is not None else []
    for query, key in request.pairs:
        words += ["--pair", query, key]
    words += ["--inputs-first"] if request.inputs_first else []
    words += ["--seed", str(seed)] if seed else []
    return shlex.join(words)
