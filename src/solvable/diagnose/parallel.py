"""Results of many tasks in their order, in this process or in others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

Result = TypeVar("Result")


def each_result(
    function: Callable[..., Result], tasks: Iterable[tuple[Any, ...]], workers: int
) -> Iterator[Result]:
    """Yield `function(*task)` for each task; at most two tasks a worker are prepared ahead."""
    if workers == 1:
        for task in tasks:
            yield function(*task)
        return
    from joblib import Parallel, delayed

    run = Parallel(n_jobs=workers, return_as="generator", pre_dispatch=2 * workers)
    yield from run(delayed(function)(*task) for task in tasks)
