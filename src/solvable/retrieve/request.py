"""Options of a training run. The command line imports this module, so it imports little."""

from __future__ import annotations

from dataclasses import dataclass

from solvable.errors import InvalidParameter, unknown_choice

STUDENTS = ("static", "tiny", "minilm")
PIPELINE_NAMES = ("dense", "a", "b", "c")
PROMPTED = ("none", "pretraining", "finetuning", "both")


@dataclass(frozen=True)
class TrainRequest:
    """Options of `solvable retrieve train` other than the corpus.

    Parameters
    ----------
    student : {"static", "tiny", "minilm"}
        Whitened token vectors with one learned matrix; an encoder of two layers from random weights;
        MiniLM with a new head.
    seeds : int
        Number of runs, 1 to 100, with different initial weights and orders of the data.
    seed : int
        Seed of the first run, not negative.
    unsupervised, supervised, distilled : int
        Largest number of documents, pairs and queries of the three phases, at least 32.
    tested : int
        Largest number of test queries, at least 10.
    batch : int
        Pairs per step of the unsupervised phase, 8 to 16,384; gradients are cached in chunks.
    prompts : {"none", "pretraining", "finetuning", "both"}
        Phases whose texts begin with a prompt: the unsupervised phase, the two others, or all.
    temperature : {"fixed", "learned"}
        Whether the temperature of contrastive phases is learned from its starting value.

    Raises
    ------
    InvalidParameter
        If a value is out of range.

    Examples
    --------
    >>> TrainRequest(seeds=0)
    Traceback (most recent call last):
    ...
    solvable.errors.InvalidParameter: seeds is 0; allowed: whole numbers from 1 to 100.
    """

    student: str = "static"
    seeds: int = 3
    seed: int = 0
    unsupervised: int = 10_000
    supervised: int = 2_500
    distilled: int = 1_000
    tested: int = 500
    batch: int = 128
    prompts: str = "none"
    temperature: str = "fixed"

    def __post_init__(self) -> None:
        for name, least, most in (
            ("seeds", 1, 100),
            ("seed", 0, None),
            ("unsupervised", 32, None),
            ("supervised", 32, None),
            ("distilled", 32, None),
            ("tested", 10, None),
            ("batch", 8, 16_384),
        ):
            value = getattr(self, name)
            if value < least or (most is not None and value > most):
                allowed = f"from {least}" + (f" to {most:,}" if most else "")
                raise InvalidParameter(f"{name} is {value}; allowed: whole numbers {allowed}.")
        for name, choices in (
            ("student", STUDENTS),
            ("prompts", PROMPTED),
            ("temperature", ("fixed", "learned")),
        ):
            if getattr(self, name) not in choices:
                raise InvalidParameter(unknown_choice(name, getattr(self, name), choices))


def check_pipelines(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the pipelines, each once, or refuse unknown ones."""
    for name in names:
        if name not in PIPELINE_NAMES:
            raise InvalidParameter(unknown_choice("pipeline", name, PIPELINE_NAMES))
    return tuple(dict.fromkeys(names)) or PIPELINE_NAMES
