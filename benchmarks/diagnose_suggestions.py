"""Loss on held-out data before and after each cut that ``solvable diagnose`` suggests.

    python benchmarks/diagnose_suggestions.py [--seeds 3] [--first-seed 0] [--only NAME] [--wrong]
        [--store DIR]

Small networks of ``diagnose_networks.py`` are trained, three seeds each, and diagnosed. With
``--store``, each finished network is one line of ``outcomes.jsonl`` in the directory, next to its
trained weights, and is not run again. With ``--wrong``, only networks that classify images are
trained, with a fifth of their labels wrong. Each matrix with a bulk is cut at its edge alone, whether
that is suggested or not, and all suggested cuts of a network are made together. The output is
Markdown: every suggested cut, the largest loss first; then the cuts that are not suggested, by reason.
The bounds: at most one in twenty of the suggested cuts raises the loss by more than 5 %, and the sign
of the change of loss with all cuts of a network is the predicted one for at least nine in ten networks
with a prediction. Networks without a prediction, and changes within two standard errors over the
held-out rows, are counted too.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from diagnose_networks import (
    NETWORKS,
    Network,
    held_out_loss,
    held_out_losses,
    train,
    training_loss,
)
from gemm import exit_status, one_thread, show
from safetensors.torch import save_file
from torch import nn

from solvable.diagnose import diagnose_file, diagnose_matrix
from solvable.diagnose.attention.query_key_arrays import Heads
from solvable.diagnose.pruning.evaluation import CLEAR
from solvable.diagnose.pruning.prediction import narrowest_of, predicted
from solvable.diagnose.pruning.truncation import truncated
from solvable.diagnose.roles import Part, parts_of

HARM = 1.05  # ratio of the loss after to the loss before above which a cut is harmful


@dataclass(frozen=True)
class Trial:
    """A cut of one matrix, or of all suggested matrices of a network."""

    network: str
    seed: int
    matrix: str
    kept: int
    values: int
    share: float
    lead: float
    reason: str  # reason against the cut; empty if it is suggested
    reason_with_initial: str  # the same with the initial weights
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """Loss after the cut over the loss before it."""
        return self.after / self.before


@dataclass(frozen=True)
class Outcome:
    """Trials of one trained network."""

    network: str
    seed: int
    loss: float
    matrices: int  # number of fitted matrices
    trials: list[Trial]
    together: float | None  # loss with all suggested cuts; None without a suggestion
    denoised: float | None  # loss with the same matrices denoised
    predicted: str  # predicted effect of all suggested cuts: "worse", "no change" or ""
    most: int  # largest number of directions that a suggested cut keeps
    narrowest: int  # number of singular values of the narrowest matrix
    error: float  # standard error of the change of the loss, over the held-out rows
    start: float  # smallest cosine between a removed bulk and the weights before training
    training: float  # change of the training loss with all suggested cuts, relative to this loss
    seconds: float  # seconds of CPU time


def part_in(name: str, arrays: dict[str, np.ndarray]) -> tuple[str, Part | None]:
    """Return the array of a diagnosed matrix, and its part if it is a fused projection."""
    whole, _, label = name.partition("[")
    if not label:
        return name, None
    parts, _ = parts_of(whole, {key: array.shape for key, array in arrays.items()}, Heads())
    return whole, next(part for part in parts if part.name == label.rstrip("]"))


def placed(whole: np.ndarray, part: Part | None, matrix: np.ndarray) -> np.ndarray:
    """Return an array with a matrix in the place of a part."""
    if part is None:
        return matrix
    copy = whole.copy()
    copy[(slice(None),) * part.axis + (part.rows,)] = matrix
    return copy


def set_array(model: nn.Module, name: str, array: np.ndarray) -> None:
    """Write an array into a network."""
    with torch.no_grad():
        model.get_parameter(name).copy_(torch.from_numpy(np.ascontiguousarray(array)))


def try_cuts(network: Network, seed: int, weights: Path) -> Outcome:
    """Train a network, write and diagnose it, and make its cuts alone, then those suggested together."""
    torch.set_num_threads(1)
    started = time.process_time()
    model, before = train(network, seed)
    losses = held_out_losses(network, model)
    loss, error = float(losses.mean()), 0.0
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, weights)
    rows = list(diagnose_file(weights))
    arrays = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    start = {name: value.numpy() for name, value in before.items()}
    trials, suggested, cosines = [], [], []
    for row in rows:
        if row.advice is None or row.suggestion is None:
            continue
        name, part = part_in(row.name, arrays)
        old = arrays[name] if part is None else part.of(arrays[name])
        parts = truncated(old, row)
        new = parts.cut().reshape(old.shape).astype(old.dtype)
        set_array(model, name, placed(arrays[name], part, new))
        after = held_out_loss(network, model)
        set_array(model, name, arrays[name])
        with_initial = row.suggestion.reason
        if row.suggestion.suggested:
            suggested.append((name, part, new, parts))
            old_start = start[name] if part is None else part.of(start[name])
            bulk = (old - new).ravel()
            cosines.append(
                float(bulk @ old_start.ravel() / np.linalg.norm(bulk) / np.linalg.norm(old_start))
            )
            changed = diagnose_matrix(old, name=row.name, precision=2.0**-23, initial=old_start)
            with_initial = changed.suggestion.reason if changed.suggestion else ""
        trials.append(
            Trial(
                network.name, seed, row.name, row.advice.kept, len(row.values),
                row.advice.kept_share, row.log_likelihood_ratio or 0.0,
                row.suggestion.reason, with_initial, loss, after,
            )
        )  # fmt: skip
    together = denoised = None
    training = np.nan
    if suggested:
        at_first = training_loss(network, model)
        for name, part, new, _ in suggested:
            now = model.state_dict()[name].numpy().copy()
            set_array(model, name, placed(now, part, new))
        cut = held_out_losses(network, model)
        together = float(cut.mean())
        error = float((cut - losses).std(ddof=1) / len(losses) ** 0.5)
        training = training_loss(network, model) / at_first - 1
        for name, part, new, parts in suggested:
            now = model.state_dict()[name].numpy().copy()
            best = parts.shrunk().reshape(new.shape).astype(new.dtype)
            set_array(model, name, placed(now, part, best))
        denoised = held_out_loss(network, model)
    narrowest = narrowest_of(rows)
    effect = predicted([parts for *_, parts in suggested], narrowest)[0]
    most = max((len(parts.values) for *_, parts in suggested), default=0)
    fitted = sum(row.fitted for row in rows)
    seconds = time.process_time() - started
    return Outcome(
        network.name, seed, loss, fitted, trials, together, denoised, effect, most,
        0 if narrowest is None else narrowest.width, error, min(cosines, default=np.nan),
        training, seconds,
    )  # fmt: skip


def outcomes(
    networks: Sequence[Network], seeds: Sequence[int], directory: Path
) -> Iterator[Outcome]:
    """Outcomes of every network with every seed; finished ones are read from the directory."""
    path = directory / "outcomes.jsonl"
    done = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        stored = json.loads(line)
        stored["trials"] = [Trial(**trial) for trial in stored["trials"]]
        done[stored["network"], stored["seed"]] = Outcome(**stored)
    for network, seed in ((network, seed) for seed in seeds for network in networks):
        name = network.name
        outcome = done.get((name, seed))
        if outcome is None:
            outcome = try_cuts(network, seed, directory / f"{name}-{seed}.safetensors")
            with path.open("a") as stream:
                stream.write(json.dumps(asdict(outcome)) + "\n")
            print(f"{name} {seed}: {outcome.seconds:.0f} s of CPU time", flush=True)
        yield outcome


def chosen_networks(only: str, *, wrong: bool) -> list[Network]:
    """Networks whose name contains ``only``, in turns of one of each kind; or those with wrong labels."""
    turns: dict[str, int] = defaultdict(int)
    places = []
    for index, network in enumerate(NETWORKS):
        places.append((turns[network.kind], index))
        turns[network.kind] += 1
    found = [NETWORKS[index] for _, index in sorted(places) if only in NETWORKS[index].name]
    if not wrong:
        return found
    return [
        replace(network, name=f"wrong-{network.name}", data=f"wrong {network.data}")
        for network in found
        if network.data in ("mnist", "digits")
    ]


def _head(*names: str) -> None:
    print(f"\n| {' | '.join(names)} |\n|{'---|' * len(names)}")


def networks_table(found: Sequence[Outcome]) -> None:
    """Print each network: losses, matrices, suggested cuts, and the loss with all of them."""
    _head("network", "loss", "matrices fitted", "cuts suggested", "loss with all of them")
    by_name: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in found:
        by_name[outcome.network].append(outcome)
    for name, group in by_name.items():
        losses = ", ".join(f"{one.loss:.3g}" for one in group)
        fitted = ", ".join(str(one.matrices) for one in group)
        counts = ", ".join(str(sum(not t.reason for t in one.trials)) for one in group)
        all_of_them = ", ".join(
            "–" if one.together is None else f"{one.together:.3g}" for one in group
        )
        print(f"| {name} | {losses} | {fitted} | {counts} | {all_of_them} |")


def sign_table(found: Sequence[Outcome]) -> tuple[float, float]:
    """Print predicted and measured effects; return the shares right and without a prediction."""
    heads = ("network, seed", "cuts", "loss", "all cuts", "denoised", "measured", "predicted")
    _head(*heads, "kept, narrowest", "cosine of bulk and start")
    judged = [one for one in found if one.together is not None]
    counts = {"right": 0, "wrong": 0, "right, not clear": 0, "wrong, not clear": 0}
    signs = 0
    for one in sorted(judged, key=lambda outcome: -outcome.together / outcome.loss):
        change, error = one.together / one.loss - 1, one.error / one.loss
        measured = "no change" if abs(change) <= 1e-4 else "worse" if change > 0 else "better"
        clear = measured == "no change" or abs(change) > CLEAR * error
        signs += measured == (one.predicted or "worse")
        if one.predicted:
            verdict = "right" if measured == one.predicted else "wrong"
            counts[verdict if clear else f"{verdict}, not clear"] += 1
        cuts = sum(not trial.reason for trial in one.trials)
        print(
            f"| {one.network}, {one.seed} | {cuts} | {one.loss:.4g} | "
            f"{100 * change:+.2f} ± {100 * error:.2f} % | "
            f"{100 * (one.denoised / one.loss - 1):+.2f} % | "
            f"{measured if clear else f'{measured}, not clear'} | "
            f"{one.predicted or 'no prediction'} | {one.most}, {one.narrowest} | {one.start:.2f} |"
        )
    total = sum(counts.values())
    right = counts["right"] + counts["right, not clear"]
    print(f"\n{len(found) - len(judged)} of {len(found)} networks have no cut")
    print(f"{len(judged) - total} of {len(judged)} networks with a cut have no prediction")
    print(f"the predicted effect is right for {right} of {total} networks with a prediction")
    print(
        f"changes beyond two standard errors alone: {counts['right']} right, {counts['wrong']} wrong"
    )
    print(f"a rule that always predicts: right for {signs} of {len(judged)}")
    return right / max(total, 1), (len(judged) - total) / max(len(judged), 1)


def suggested_table(trials: Sequence[Trial]) -> None:
    """Print every suggested cut, the largest loss first."""
    heads = ("network, seed", "matrix", "kept", "squared norm", "lead", "loss before", "after")
    _head(*heads, "change", "with --initial")
    for one in sorted(trials, key=lambda trial: -trial.ratio):
        initial = f"no: {one.reason_with_initial}" if one.reason_with_initial else "yes"
        print(
            f"| {one.network}, {one.seed} | `{one.matrix}` | {one.kept} of {one.values} | "
            f"{100 * one.share:.0f} % | {one.lead:.1f} | {one.before:.4g} | {one.after:.4g} | "
            f"{100 * (one.ratio - 1):+.1f} % | {initial} |"
        )


def withheld_table(trials: Sequence[Trial]) -> None:
    """Print the effects of the cuts that are not suggested, by reason."""
    _head("not suggested, as", "cuts", "raise the loss by over 5 %", "median change", "largest")
    by_reason: dict[str, list[float]] = defaultdict(list)
    for one in trials:
        by_reason[one.reason].append(one.ratio)
    for reason, ratios in sorted(by_reason.items()):
        harmful = sum(ratio > HARM for ratio in ratios)
        median, largest = (100 * (x - 1) for x in (np.median(ratios), max(ratios)))
        print(f"| {reason} | {len(ratios)} | {harmful} | {median:+.1f} % | {largest:+.0f} % |")


def main() -> None:
    """Train, cut, and print the tables and the bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--wrong", action="store_true", help="train on wrong labels")
    parser.add_argument("--store", type=Path, help="directory of finished networks")
    asked = parser.parse_args()
    networks = chosen_networks(asked.only, wrong=asked.wrong)
    seeds = [asked.first_seed + k for k in range(asked.seeds)]
    with tempfile.TemporaryDirectory() as temporary:
        directory = asked.store or Path(temporary)
        directory.mkdir(parents=True, exist_ok=True)
        found = list(outcomes(networks, seeds, directory))
    trials = [trial for outcome in found for trial in outcome.trials]
    suggested = [trial for trial in trials if not trial.reason]
    networks_table(found)
    right, without = sign_table(found)
    suggested_table(suggested)
    withheld_table([trial for trial in trials if trial.reason])
    print()
    harmful = sum(one.ratio > HARM for one in suggested)
    print(f"{harmful} of {len(suggested)} suggested cuts raise the loss by more than 5 %")
    initial = [one for one in suggested if not one.reason_with_initial]
    print(f"with --initial: {sum(one.ratio > HARM for one in initial)} of {len(initial)}")
    matrices = sum(outcome.matrices for outcome in found)
    print(f"{len(suggested)} of {matrices} fitted matrices have a suggestion")
    print(f"CPU time {sum(outcome.seconds for outcome in found) / 60:.1f} minutes\n")
    share = harmful / max(len(suggested), 1)
    show("share of suggested cuts that raise the loss by > 5 %", share, 0.05, at_least=False)
    show("share of networks with the predicted sign of the change of loss", right, 0.9)
    print(f"share of networks with a cut but no prediction: {100 * without:.0f} %")
    show("share of matrices with a suggestion", len(suggested) / matrices, 0.02)


if __name__ == "__main__":
    with one_thread():
        main()
    raise SystemExit(exit_status())
