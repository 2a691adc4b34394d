"""Diagnosis of all weights, and the pruned weights if they were asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from solvable.diagnose.attention.heads_of_file import AttentionRequest
from solvable.diagnose.attention.query_key_arrays import heads_of
from solvable.diagnose.diagnosed import Diagnosed
from solvable.diagnose.matrices_of_file import diagnose_whole, opened
from solvable.diagnose.pruning.run import PruneRequest, prepared, pruned


def diagnosed(
    source: Any, wanted: PruneRequest | None, *, request: AttentionRequest, **options: Any
) -> Diagnosed:
    """Diagnose all arrays and heads by ``diagnose_whole``, then write and measure what is wanted."""
    weights = opened(source)
    # The request is checked first: a diagnosis may take long.
    plan = None if wanted is None else prepared(weights, wanted)
    found = diagnose_whole(weights, request=request, **options)
    if plan is None:
        return found
    return replace(found, pruning=pruned(plan, found, heads_of(weights, request.heads)))
