"""Theories averaged over few draws, for tests of what does not depend on the number of draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest

from solvable.models.compositional import first_layer
from solvable.models.lofi_images import predict as images
from solvable.models.multi_index import best_overlaps
from solvable.models.multi_index.hierarchical import predict as hierarchical
from solvable.models.sequential import predict as sequential
from solvable.moment_spectrum import spike_law
from solvable.moment_spectrum.operator_population import Population


def forget() -> None:
    """Clear the caches of predictions that average over draws."""
    for cached in (
        first_layer._model,
        images._alignment,
        sequential._moments,
        best_overlaps.best_overlaps,
        hierarchical._informed_error,
    ):
        cached.cache_clear()


def at_most(most: int, draw: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with at most this number of draws."""
    return lambda *, draws, **rest: draw(draws=min(draws, most), **rest)


@contextmanager
def few_draws() -> Iterator[None]:
    """Draw three matrices or operators at a size, 16 cavity means, and one or two sets of images."""
    members = Population.members
    forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spike_law, "draw_spikes", at_most(3, spike_law.draw_spikes))
        patch.setattr(
            Population, "members", lambda self, n, first=0: members(self, min(n, 3), first)
        )
        patch.setattr(best_overlaps, "SumEvolution", partial(best_overlaps.SumEvolution, draws=16))
        patch.setattr(images, "DRAWS", {("digits", 1): 2, ("digits", 2): 1})
        yield
    forget()
