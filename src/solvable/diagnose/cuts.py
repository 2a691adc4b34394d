"""Cuts of a matrix at the edge of its bulk: whether one is suggested, and the matrix that it leaves."""

from __future__ import annotations

import numpy as np

from solvable.diagnose.diagnosis import MatrixDiagnosis, Suggestion
from solvable.diagnose.roles import Role
from solvable.errors import InvalidData

LEAST_SHARE = 0.5  # of the squared norm, below which no cut is suggested
LEAST_LEAD = 10.0  # nats of the phase over its runner-up, below which no cut is suggested

# Reasons against a cut, in a word and as a clause.
REASONS = {
    "embedding": "an embedding, whose rows are used one by one",
    "fused": "a fused projection, which holds several matrices",
    "edge": "no bulk of independent noise was found, so there is no edge",
    "nothing": "nothing stands out of the noise, so a cut would keep nothing",
    "norm": f"less than {100 * LEAST_SHARE:.0f} % of the squared norm would be left",
    "lead": f"the phase leads by less than {LEAST_LEAD:g} nats",
}


def suggestion_of(row: MatrixDiagnosis, role: Role) -> Suggestion | None:
    """Return whether a cut is suggested, and why not; None where nothing was fitted."""
    if not row.fitted:
        return None
    reason = role or _against(row)
    if reason:
        return Suggestion(False, reason, REASONS[reason])
    # A bulk that was there from the start may be in use: where the change is known, what training
    # added must be noise and spikes by the same rules.
    change = row.initial.difference if row.initial is not None else None
    if change is not None:
        reason = _against(change)
        if reason:
            text = (
                f"the change since the initial weights, {change.phase}, is against it: "
                f"{REASONS[reason]}"
            )
            return Suggestion(False, "change", text)
    return Suggestion(True)


def _against(row: MatrixDiagnosis) -> str:
    advice, lead = row.advice, row.log_likelihood_ratio
    if advice is None:
        return "edge"
    if not advice.kept:
        return "nothing"
    if advice.kept_share < LEAST_SHARE:
        return "norm"
    return "" if lead is not None and lead >= LEAST_LEAD else "lead"


def cut_matrix(weights: np.ndarray, row: MatrixDiagnosis) -> np.ndarray:
    r"""Set the values of a matrix below the edge of its bulk to zero.

    With :math:`W = \sum_i y_i u_i v_i^\top`, return :math:`\sum_{i\le k} y_i u_i v_i^\top` for the
    k values beyond the edge.

    Parameters
    ----------
    weights : ndarray of shape (p, q) or (p, ...)
        The matrix that was diagnosed.
    row : MatrixDiagnosis
        Its diagnosis.

    Returns
    -------
    ndarray
        Of the shape and type of ``weights``.

    Raises
    ------
    InvalidData
        If the diagnosis has no bulk, so that there is no edge at which to cut.

    Notes
    -----
    This removes noise from the matrix as an estimate of the signals behind it. Its effect on the
    loss of the network is not known from the weights: evaluate it on data held out from training.
    Backed by ``tests/diagnose/test_cuts.py`` and ``benchmarks/diagnose_suggestions.py``.

    Examples
    --------
    >>> from solvable.diagnose import diagnose_matrix
    >>> rng = np.random.default_rng(0)
    >>> W = rng.standard_normal((40, 60))
    >>> W = W + np.outer(rng.standard_normal(40), rng.standard_normal(60))
    >>> int(np.linalg.matrix_rank(cut_matrix(W, diagnose_matrix(W))))
    1
    """
    if row.advice is None:
        raise InvalidData(f"{row.name} has no bulk of noise, so no edge at which to cut.")
    matrix = np.asarray(weights, dtype=np.float64).reshape(len(weights), -1)
    kept = row.advice.kept
    if row.symmetric and matrix.shape[0] == matrix.shape[1]:
        values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
        # Values of both signs lie about the centre of their bulk.
        both = row.values is not None and row.values.min() < 0
        centre = -row.shrinkage.value if both and row.shrinkage is not None else 0.0
        far = np.argsort(-np.abs(values - centre))[:kept]
        left = (vectors[:, far] * values[far]) @ vectors[:, far].T
    else:
        U, s, Vt = np.linalg.svd(matrix, full_matrices=False)
        left = (U[:, :kept] * s[:kept]) @ Vt[:kept]
    return np.asarray(left.reshape(weights.shape).astype(weights.dtype))
