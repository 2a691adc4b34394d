"""Cut of a matrix at the edge of its bulk: whether to try the cut, and the cut matrix."""

from __future__ import annotations

import numpy as np

from solvable.diagnose.diagnosis import MatrixDiagnosis, Suggestion
from solvable.diagnose.pruning.truncation import truncated
from solvable.diagnose.roles import Role

LEAST_SHARE = 0.5  # a suggested cut keeps at least this share of the squared norm
LEAST_LEAD = 10.0  # a cut is suggested only if the phase leads by this log-likelihood, in nats

# reasons against a cut: keyword and clause for the reader
REASONS = {
    "embedding": "an embedding's rows are used one at a time",
    "fused": "a fused projection contains several matrices",
    "edge": "there is no bulk of independent noise, and so no edge",
    "nothing": "no value is above the noise, so a cut would keep nothing",
    "norm": f"less than {100 * LEAST_SHARE:.0f} % of the squared norm would be left",
    "lead": f"the phase leads by less than {LEAST_LEAD:g} nats",
}


def suggestion_of(row: MatrixDiagnosis, role: Role) -> Suggestion | None:
    """Return whether a cut is suggested, with the reason if not; None if nothing was fitted."""
    if not row.fitted:
        return None
    reason = role or _against(row)
    if reason:
        return Suggestion(False, reason, REASONS[reason])
    # The network may use a bulk that stems from initialisation. So, if the initial weights are known,
    # the change of the weights must pass the rules that the weights pass.
    change = row.initial.difference if row.initial is not None else None
    if change is not None:
        reason = _against(change)
        if reason:
            text = (
                f"the change since the initial weights ({change.phase}) rules a cut out: "
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
        The diagnosis of the matrix.

    Returns
    -------
    ndarray
        The cut matrix, with the shape and type of ``weights``.

    Raises
    ------
    InvalidData
        If the diagnosis has no bulk of noise, and so no edge at which to cut.

    Notes
    -----
    The cut matrix is a better estimate of the signals behind the matrix. The weights alone do not
    give its effect on the loss of the network: evaluate the loss on held-out data.
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
    return np.asarray(truncated(weights, row).cut().reshape(weights.shape).astype(weights.dtype))
