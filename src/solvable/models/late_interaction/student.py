r"""A student of one matrix W with kernel S = W^T W: losses with exact gradients, and Adam."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np

from solvable.arrays import check_positive
from solvable.errors import InvalidData, InvalidParameter, unknown_choice

Scores = Literal["multi-vector", "dense"]
"""Scores of a student: MaxSim of the tokens, or the product of pooled vectors."""

Normalisation = Literal["standard", "min-max", "none"]
"""Rescaling of the scores of a query: to mean 0 and variance 1, to [0, 1], or none."""

Pullback = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
"""Function from the gradient in the scores to the gradients in both sets of tokens."""

SMALLEST = 1e-8
"""Added to the scale of the scores of a query, and to the denominator of Adam."""


def contrastive_gradient(
    factor: np.ndarray,
    queries: np.ndarray,
    documents: np.ndarray,
    *,
    scores: Scores,
    temperature: float,
    chunk: int | None = None,
) -> tuple[float, np.ndarray]:
    """Compute the contrastive loss of a batch and its gradient in W, shape (k, d)."""
    # L = -1/B sum_i log exp(s(Q_i, D_i0) / tau) / sum_jc exp(s(Q_i, D_jc) / tau)   (late-interaction 21)
    # Queries have shape (B, L_q, d), documents (B, N, L_d, d) with the positive in column 0; the
    # documents of the other queries are negatives. `chunk` queries are scored at a time, with the
    # negatives of the batch.
    left, right = _embedded(factor, queries, documents)
    B, N, document_tokens, k = right.shape
    left, right = left[None], right.reshape(1, B * N, document_tokens, k)
    loss, left_gradient, right_gradient = 0.0, np.empty_like(left), np.zeros_like(right)
    step = B if chunk is None else chunk
    for start in range(0, B, step):
        rows = np.arange(start, min(start + step, B))
        found, pullback = score(left[:, rows], right, scores)
        part, gradient = contrastive_loss(found[0], N * rows, temperature)
        left_gradient[:, rows], documents_part = pullback(gradient[None])
        right_gradient += documents_part
        loss += part
    total = _in_factor(left_gradient, queries) + _in_factor(right_gradient, documents)
    return loss / B, total / B


def distillation_gradient(
    factor: np.ndarray,
    queries: np.ndarray,
    documents: np.ndarray,
    teacher: np.ndarray,
    *,
    scores: Scores,
    temperature: float,
    normalisation: Normalisation = "standard",
) -> tuple[float, np.ndarray]:
    """Compute the loss of distillation of a batch and its gradient in W, shape (k, d)."""
    # L = 1/B sum_i KL(softmax_c(t_ic / tau) || softmax_c(s_ic / tau)) of rescaled scores t of the
    # teacher, shape (B, K), and s of the student (late-interaction 22); candidates have shape (B, K,
    # L_d, d).
    left, right = _embedded(factor, queries, documents)
    if teacher.shape != documents.shape[:2]:
        raise InvalidData(
            f"scores of the teacher have shape {teacher.shape}; allowed: {documents.shape[:2]}."
        )
    found, pullback = score(left[:, None], right, scores)
    loss, gradient = distillation_loss(found[:, 0], teacher, temperature, normalisation)
    left_gradient, right_gradient = pullback(gradient[:, None])
    total = _in_factor(left_gradient, queries) + _in_factor(right_gradient, documents)
    return loss / len(queries), total / len(queries)


def score(
    queries: np.ndarray, documents: np.ndarray, scores: Scores
) -> tuple[np.ndarray, Pullback]:
    """Score all queries of a group with all documents of the group."""
    # Queries have shape (groups, q, L_q, k), documents (groups, m, L_d, k) and scores (groups, q, m).
    # The second result maps the gradient in the scores to those in the tokens.
    if scores not in get_args(Scores):
        raise InvalidParameter(unknown_choice("scores", scores, list(get_args(Scores))))
    return (_pooled if scores == "dense" else _maxsim)(queries, documents)


def _pooled(queries: np.ndarray, documents: np.ndarray) -> tuple[np.ndarray, Pullback]:
    # s = (1 / L_d) sum_ij <q_i, d_j>   (late-interaction 2)
    left, right = queries.sum(axis=2), documents.mean(axis=2)

    def pullback(gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        query = (gradient @ right)[:, :, None]
        document = (gradient.transpose(0, 2, 1) @ left)[:, :, None] / documents.shape[2]
        return np.broadcast_to(query, queries.shape), np.broadcast_to(document, documents.shape)

    return left @ right.transpose(0, 2, 1), pullback


def _maxsim(queries: np.ndarray, documents: np.ndarray) -> tuple[np.ndarray, Pullback]:
    # s = sum_i max_j <q_i, d_j>   (late-interaction 1)
    groups, q, query_tokens, k = queries.shape
    m, document_tokens = documents.shape[1:3]
    left = queries.reshape(groups, q * query_tokens, k)
    right = documents.reshape(groups, m * document_tokens, k)
    similarity = (right @ left.transpose(0, 2, 1)).reshape(groups, m, document_tokens, -1)
    best = similarity.max(axis=2)

    def pullback(gradient: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # ds / d<q_i, d_j> is 1 for the winning token j(i)   (late-interaction 23); equal tokens share it.
        wins = similarity >= best[:, :, None]
        each = np.repeat(gradient.transpose(0, 2, 1), query_tokens, axis=2) / wins.sum(
            axis=2, dtype=gradient.dtype
        )
        weights = (wins * each[:, :, None]).reshape(groups, m * document_tokens, -1)
        query = weights.transpose(0, 2, 1) @ right
        return query.reshape(queries.shape), (weights @ left).reshape(documents.shape)

    total = best.reshape(groups, m, q, query_tokens).sum(axis=3)
    return total.transpose(0, 2, 1), pullback


def contrastive_loss(
    scores: np.ndarray, positives: np.ndarray, temperature: float
) -> tuple[float, np.ndarray]:
    """Sum over queries of -log softmax(s / tau) at the positive, and its gradient in s."""
    check_positive(temperature=temperature)
    # dL / ds = (softmax(s / tau) - 1 at the positive) / tau   (late-interaction 21)
    logits = _log_softmax(scores / temperature)
    rows = np.arange(len(scores))
    gradient = np.exp(logits)
    gradient[rows, positives] -= 1
    return -float(logits[rows, positives].sum()), gradient / temperature


def distillation_loss(
    scores: np.ndarray, teacher: np.ndarray, temperature: float, normalisation: Normalisation
) -> tuple[float, np.ndarray]:
    """Sum over queries of the KL divergence of softmaxes at temperature tau, and its gradient in s."""
    check_positive(temperature=temperature)
    rescaled, pullback = normalised(scores, normalisation)
    # sum_i KL(softmax(x*_i / tau) || softmax(x_i / tau))   (late-interaction 22)
    target = _log_softmax(normalised(teacher, normalisation)[0] / temperature)
    student = _log_softmax(rescaled / temperature)
    loss = float(np.sum(np.exp(target) * (target - student)))
    return loss, pullback((np.exp(student) - np.exp(target)) / temperature)


def normalised(
    scores: np.ndarray, normalisation: Normalisation
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Rescale the scores of each query; the second result maps gradients back."""
    if normalisation not in get_args(Normalisation):
        allowed = list(get_args(Normalisation))
        raise InvalidParameter(unknown_choice("normalisation", normalisation, allowed))
    if normalisation == "none":
        return scores, lambda gradient: gradient
    return (_standardised if normalisation == "standard" else _ranged)(scores)


def _standardised(scores: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    centred = scores - scores.mean(axis=1, keepdims=True)
    deviation = centred.std(axis=1, keepdims=True) + SMALLEST
    result = centred / deviation

    def pullback(gradient: np.ndarray) -> np.ndarray:
        # dx / ds = (I - (1 1^T + x x^T) / K) / std(s)   (late-interaction 22)
        centre = gradient - gradient.mean(axis=1, keepdims=True)
        along = (gradient * result).mean(axis=1, keepdims=True)
        return np.asarray((centre - along * result) / deviation)

    return result, pullback


def _ranged(scores: np.ndarray) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    rows = np.arange(len(scores))
    low, high = scores.argmin(axis=1), scores.argmax(axis=1)
    spread = (scores[rows, high] - scores[rows, low])[:, None] + SMALLEST
    result = (scores - scores[rows, low][:, None]) / spread

    def pullback(gradient: np.ndarray) -> np.ndarray:
        # dx_c = (ds_c - ds_low - x_c (ds_high - ds_low)) / spread
        back = gradient / spread
        along, total = (back * result).sum(axis=1), back.sum(axis=1)
        back[rows, low] += along - total
        back[rows, high] -= along
        return back

    return result, pullback


@dataclass
class Adam:
    """Adam with a warm-up and a linear decay of the learning rate to 0."""

    learning_rate: float
    steps: int
    warm_up: float = 0.1  # share of the steps
    taken: int = 0
    mean: np.ndarray | float = field(default=0.0, repr=False)
    square: np.ndarray | float = field(default=0.0, repr=False)

    def step(self, parameters: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """Return the parameters after one step."""
        rising = (self.taken + 1) / max(1.0, self.warm_up * self.steps)
        rate = self.learning_rate * min(1.0, rising, 1 - self.taken / self.steps)
        self.taken += 1
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.square = 0.999 * self.square + 0.001 * gradient**2
        mean = self.mean / (1 - 0.9**self.taken)
        square = self.square / (1 - 0.999**self.taken)
        return np.asarray(parameters - rate * mean / (np.sqrt(square) + SMALLEST), parameters.dtype)


def _embedded(
    factor: np.ndarray, queries: np.ndarray, documents: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Embed tokens by W, after a check of the shapes."""
    shapes = factor.shape, queries.shape, documents.shape
    fits = [len(shape) for shape in shapes] == [2, 3, 4] and len(queries) == len(documents) > 0
    if not fits or len({shape[-1] for shape in shapes}) != 1:
        raise InvalidData(
            f"the factor has shape {shapes[0]}, queries {shapes[1]} and documents {shapes[2]}; "
            "allowed: (k, d), (B, L_q, d) and (B, N, L_d, d)."
        )
    return queries @ factor.T, documents @ factor.T


def _in_factor(gradient: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Gradient in W of embedded tokens: the sum of outer products."""
    left, right = gradient.reshape(-1, gradient.shape[-1]), tokens.reshape(-1, tokens.shape[-1])
    return np.asarray(left.T @ right)


def _log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True)))
