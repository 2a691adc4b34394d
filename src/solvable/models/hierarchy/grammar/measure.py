"""One replicate of the random hierarchy model: draw a grammar, learn its task, and test."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from solvable.frame.points import Metrics
from solvable.models.hierarchy.grammar.boolean import DeepQuadraticBoolean
from solvable.models.hierarchy.grammar.bounds import separation_bound
from solvable.models.hierarchy.grammar.learner.convolutional import (
    FullyConnectedNetwork,
    HierarchicalCNN,
)
from solvable.models.hierarchy.grammar.learner.count_cluster import (
    CountClusterClassifier,
    gradient_distances,
)
from solvable.models.hierarchy.grammar.learner.kernel import KernelClassifier, LazyCNNClassifier
from solvable.models.hierarchy.grammar.learner.layerwise import LayerwiseRBFClassifier
from solvable.models.hierarchy.grammar.learner.transformer import TransformerClassifier
from solvable.models.hierarchy.grammar.parameters import RandomHierarchyParameters, as_list
from solvable.models.hierarchy.sparse import SparseRandomHierarchy
from solvable.models.hierarchy.target import RandomHierarchy

METRICS = (
    "test_error", "test_accuracy", "level_accuracy", "signal", "noise", "synonymic_sensitivity",
    "leaf_sensitivity", "leaf_counts", "least_distance", "distinct_laws", "worst_error", "recovered",
    "test_loss", "correlation", "context_loss", "level_belief", "label_belief",
)  # fmt: skip

DENOISED = 200
"""Strings that a replicate denoises."""

BOOLEANS = 16
"""Deep quadratic targets of a replicate."""

GRAMMARS = 24
"""Largest number of grammars over which label statistics are averaged."""

STATISTICS = 100_000
"""Strings that are drawn for label statistics, besides those of the learner's grammar."""

TRAINED = 20_000
"""Largest number of strings to which a network for the next symbol is fitted."""

TESTED = 2_000
"""Fresh strings on which a learner is tested."""

NETWORKS: Mapping[str, Callable[..., Any]] = {
    "cnn": HierarchicalCNN,
    "locally-connected": partial(HierarchicalCNN, shared=False),
    "fully-connected": FullyConnectedNetwork,
    "shallow": partial(FullyConnectedNetwork, layers=1),
    "kernel": KernelClassifier,
    "lazy-cnn": LazyCNNClassifier,
    "transformer": TransformerClassifier,
}


def draw_target(parameters: RandomHierarchyParameters, rng: np.random.Generator) -> RandomHierarchy:
    """Draw the grammar of one replicate."""
    p = parameters
    return RandomHierarchy(
        p.vocabulary, p.rules, p.branching, p.depth, p.classes, p.ensemble, p.zipf,
        seed=int(rng.integers(2**32)),
    )  # fmt: skip


def strings_of(
    parameters: RandomHierarchyParameters, target: RandomHierarchy
) -> SparseRandomHierarchy:
    """Return the target whose strings a learner sees, with blanks or none."""
    return SparseRandomHierarchy(target, parameters.blanks)


def teacher(
    parameters: RandomHierarchyParameters, rng: np.random.Generator
) -> Mapping[str, np.ndarray]:
    """Return the rules of every level of a replicate's grammar, or the signs of its products."""
    if parameters.task == "boolean":
        target = draw_boolean(parameters, rng)
        return {f"signs_{level}": signs for level, signs in enumerate(target.signs, start=1)}
    tables = draw_target(parameters, rng).tables
    return {f"rules_{level}": table for level, table in enumerate(tables, start=1)}


def measure(parameters: RandomHierarchyParameters, rng: np.random.Generator) -> Metrics:
    """Draw a grammar and samples, and measure what the task asks for."""
    metrics: Metrics = dict.fromkeys(METRICS)
    if parameters.task == "boolean":
        return metrics | _boolean(parameters, rng)
    tasks = {
        "classification": _classification, "next-token": _next_token, "denoising": _denoising
    }  # fmt: skip
    return metrics | tasks[parameters.task](parameters, draw_target(parameters, rng), rng)


def draw_boolean(
    parameters: RandomHierarchyParameters, rng: np.random.Generator
) -> DeepQuadraticBoolean:
    """Draw a deep quadratic target."""
    return DeepQuadraticBoolean(parameters.leaves, seed=int(rng.integers(2**32)))


def _boolean(parameters: RandomHierarchyParameters, rng: np.random.Generator) -> Metrics:
    """Share of targets of which all products are found, and no others."""
    hits = 0
    for _ in range(BOOLEANS):
        target = draw_boolean(parameters, rng)
        found = target.recover(*target.sample(parameters.n_samples, rng))
        hits += all(map(np.array_equal, found, target.supports))
    return {"recovered": hits / BOOLEANS}


def make_learner(parameters: RandomHierarchyParameters, seed: int) -> Any:
    """Build the unfitted learner of a setting."""
    p, positions = parameters, parameters.chosen_positions
    if p.estimator == "layerwise":
        return LayerwiseRBFClassifier(p.branching, positions=positions, random_state=seed)
    if p.estimator == "count-cluster":
        return CountClusterClassifier(
            p.patch, n_clusters=p.vocabulary, positions=positions, random_state=seed,
            blank=p.vocabulary if p.blanks else None,
        )  # fmt: skip
    options: dict[str, Any] = {}
    if p.blanks:
        # A share 1 / (s_0 + 1) of the inputs of a patch differ from 0, and gradients are as much smaller.
        options = {"blank": p.vocabulary, "learning_rate": 0.1 * p.width}
    if p.task == "next-token" and p.estimator != "transformer":
        # The last symbol is not a function of the others: training to zero loss would overfit.
        options = {"validation_fraction": 0.2}
    return NETWORKS[p.estimator](
        branching=p.patch, vocabulary=p.vocabulary, random_state=seed, **options
    )


def _classification(
    parameters: RandomHierarchyParameters, target: RandomHierarchy, rng: np.random.Generator
) -> Metrics:
    strings = strings_of(parameters, target)
    levels = strings.sample_tree(parameters.n_samples, rng)
    learner = make_learner(parameters, int(rng.integers(2**32)))
    learner.fit(levels[-1], levels[0][:, 0])
    test = strings.sample_tree(TESTED, rng)
    accuracy = float(np.mean(learner.predict(test[-1]) == test[0][:, 0]))
    return {
        "test_accuracy": accuracy,
        "test_error": 1 - accuracy,
        "level_accuracy": _level_accuracy(learner, test, accuracy, strings.blank),
        **_label_statistics(parameters, target, rng),
    }


def _label_statistics(
    parameters: RandomHierarchyParameters, target: RandomHierarchy, rng: np.random.Generator
) -> Metrics:
    """Signal, noise and synonymic sensitivity of each level, averaged over several grammars."""
    # One grammar differs from the mean over grammars; drawing more is cheap next to learning.
    more = min(STATISTICS // parameters.n_samples, GRAMMARS - 1)
    targets = [target, *(draw_target(parameters, rng) for _ in range(more))]
    statistics = [
        _statistics_of_one(strings_of(parameters, one), parameters.n_samples, rng)
        for one in targets
    ]
    rows = np.array([row for row, _ in statistics])
    squares, counts = np.sum([leaf for _, leaf in statistics], axis=0)
    known = np.isfinite(rows)
    sums = np.where(known, rows, 0.0).sum(axis=0)
    signal, noise, synonyms, everything, least, distinct, worst = np.divide(
        sums, known.sum(axis=0), out=np.full(sums.shape, np.nan), where=known.any(axis=0)
    )
    with np.errstate(invalid="ignore"):
        ratio = as_list(synonyms / everything)
    return {
        "signal": as_list(signal),
        "noise": as_list(noise),
        "synonymic_sensitivity": ratio,
        "leaf_sensitivity": ratio[-1],
        "leaf_counts": float(squares / counts) if counts else None,
        "least_distance": as_list(least),
        "distinct_laws": as_list(distinct),
        "worst_error": as_list(worst),
    }


def _statistics_of_one(
    observed: SparseRandomHierarchy, samples: int, rng: np.random.Generator
) -> tuple[np.ndarray, tuple[float, float]]:
    """Statistics of the first patches of each level, shape (7, L), and those of the first leaf."""
    # They are the signal, the noise, the distances of gradients of synonyms and of all patches, the
    # least distance of label laws, whether it is at least that of Proposition 19, and the worst error.
    target, levels = observed.grammar, observed.sample_tree(samples, rng)
    arrangements = (observed.blanks + 1) ** target.branching
    labels, classes = levels[0][:, 0], target.n_classes
    found = np.full((7, target.depth), np.nan)
    bounds = separation_bound(rules=target.rules, depth=target.depth)
    for k, level in enumerate(range(1, target.depth + 1)):
        laws = target.label_posterior(level)
        found[0, k] = squared_signal(laws[:: target.rules])
        patches = observed.patch_rows(level, levels[level][:, : observed.patch])
        counts = label_counts(patches, labels, len(laws) * arrangements, classes)
        seen = counts.sum(axis=1) > 0
        estimates = counts[seen] / counts[seen].sum(axis=1, keepdims=True)
        if level > 1 and seen.any():  # the label of a tuple just below the label is certain
            errors = np.sum((estimates - laws[np.flatnonzero(seen) // arrangements]) ** 2, axis=1)
            found[1, k], found[6, k] = errors.mean(), np.sqrt(errors.max())
        found[4, k] = least_distance(laws[:: target.rules])
        found[5, k] = np.nan if np.isnan(found[4, k]) else found[4, k] >= (1 - 1e-6) * bounds[k]
        if filled := counts.sum():
            # Gradients are in units of all strings, not of those whose first patch is not blank.
            distances = gradient_distances(counts.reshape(-1, target.rules * arrangements, classes))
            found[2:4, k] = np.array(distances) * (filled / samples) ** 2
        else:
            found[2:4, k] = 0.0
    leaves = np.where(levels[-1][:, 0] == observed.blank, -1, levels[-1][:, 0])
    counts = label_counts(leaves, labels, target.vocabulary, classes)
    centred = counts - counts.mean(axis=1, keepdims=True)
    return found, (float((centred**2).sum()), float((1 - 1 / classes) * counts.sum()))


def label_counts(symbols: np.ndarray, labels: np.ndarray, kinds: int, classes: int) -> np.ndarray:
    """Number of strings with each symbol and label, shape (kinds, classes); negative is no symbol."""
    cells = (symbols.astype(np.int64) * classes + labels)[symbols >= 0]
    return np.bincount(cells, minlength=kinds * classes).reshape(kinds, classes)


def squared_signal(laws: np.ndarray) -> float:
    """Mean squared distance of the label laws of two symbols, one law per row."""
    laws = laws[np.isfinite(laws).all(axis=1)]  # symbols that never come first have no law
    count = len(laws)
    if count < 2:
        return np.nan
    # mean over pairs of |q - q'|² = 2 / (V - 1) (sum |q|² - |sum q|² / V)
    spread = float((laws**2).sum() - (laws.sum(axis=0) ** 2).sum() / count)
    return 2 * spread / (count - 1)


def least_distance(laws: np.ndarray) -> float:
    """Smallest distance of the label laws of two symbols; NaN for more than 256 symbols."""
    laws = laws[np.isfinite(laws).all(axis=1)]
    if not 2 <= len(laws) <= 256:
        return np.nan
    products = laws @ laws.T
    squares = np.diag(products)
    pairs = (squares[:, None] + squares - 2 * products)[np.triu_indices(len(laws), 1)]
    return float(np.sqrt(max(pairs.min(), 0.0)))


def _level_accuracy(
    learner: Any, test: list[np.ndarray], accuracy: float, blank: int
) -> list[float | None] | None:
    """Share of patches of each level whose parent the learner infers, up to names of the symbols."""
    # Blank patches are left out.
    if hasattr(learner, "level_symbols"):
        inferred = learner.level_symbols(test[-1])[:-1]
        shares = [
            _majority(symbols[level != blank], level[level != blank])
            for symbols, level in zip(inferred, test[-2:0:-1], strict=True)
        ]
    elif hasattr(learner, "level_embeddings"):
        inferred = learner.level_embeddings(test[-1])[:-1]
        shares = [
            _nearest(vectors, level) for vectors, level in zip(inferred, test[-2:0:-1], strict=True)
        ]
    else:
        return None
    return [accuracy, *shares[::-1]]


def _majority(clusters: np.ndarray, symbols: np.ndarray) -> float:
    """Share of symbols that are the most frequent one of their cluster."""
    table = np.zeros((int(clusters.max()) + 1, int(symbols.max()) + 1))
    np.add.at(table, (clusters.ravel(), symbols.ravel()), 1)
    return float(table.max(axis=1).sum() / table.sum())


def _nearest(vectors: np.ndarray, symbols: np.ndarray) -> float:
    """Share of symbols whose vector is nearest to the mean vector of their kind in other strings."""
    half = len(symbols) // 2
    flat = vectors.reshape(-1, vectors.shape[-1]) if vectors.ndim == 3 else vectors
    known, asked = np.split(flat, [half * symbols.shape[1]])
    names, places = np.unique(symbols[:half], return_inverse=True)
    sums = np.zeros((names.size, flat.shape[1]))
    np.add.at(sums, places.ravel(), known)
    means = sums / np.bincount(places.ravel())[:, None]
    distances = (means**2).sum(axis=1) - 2 * asked @ means.T
    return float(np.mean(names[np.argmin(distances, axis=1)] == symbols[half:].ravel()))


def _next_token(
    parameters: RandomHierarchyParameters, target: RandomHierarchy, rng: np.random.Generator
) -> Metrics:
    X, _ = target.sample(parameters.n_samples, rng)
    fresh, _ = target.sample(TESTED, rng)
    covariances = covariance_by_height(X, target.vocabulary, target.branching)
    metrics: Metrics = {
        "correlation": as_list(np.array(covariances[::-1])),
        "context_loss": as_list(context_losses(target, fresh)),
    }
    if parameters.n_samples > TRAINED:
        return metrics
    learner = make_learner(parameters, int(rng.integers(2**32)))
    learner.fit(masked(X), X[:, -1])
    accuracy = float(np.mean(learner.predict(masked(fresh)) == fresh[:, -1]))
    # A symbol that training never saw has no probability; such strings are left out of the loss.
    known = np.isin(fresh[:, -1], learner.classes_)
    loss = learner.loss(masked(fresh)[known], fresh[known, -1])
    return metrics | {"test_accuracy": accuracy, "test_error": 1 - accuracy, "test_loss": loss}


def masked(strings: np.ndarray) -> np.ndarray:
    """Return strings whose last leaf is masked, which is written as -1."""
    hidden = strings.copy()
    hidden[:, -1] = -1
    return hidden


def context_losses(target: RandomHierarchy, strings: np.ndarray) -> np.ndarray:
    """Mean loss of exact inference of the last leaf from s^l - 1 leaves before it, longest first."""
    truth = strings[:, -1:].astype(np.intp)
    losses = []
    for height in range(target.depth, 0, -1):
        laws = target.next_token_law(strings, height)
        losses.append(float(-np.mean(np.log(np.take_along_axis(laws, truth, axis=1)))))
    return np.array(losses)


def _denoising(
    parameters: RandomHierarchyParameters, target: RandomHierarchy, rng: np.random.Generator
) -> Metrics:
    levels = target.sample_tree(DENOISED, rng)
    strings, epsilon = levels[-1], parameters.noise_level
    # Mean belief: the evidence is that of the true leaves, weakened by the noise level.
    evidence = target.noisy_evidence(strings, epsilon)
    beliefs, _ = target.belief_propagation(evidence, downward=False)
    means = [_belief(law, level) for law, level in zip(beliefs, levels, strict=True)]
    laws, _ = target.belief_propagation(target.noisy_evidence(strings, epsilon, rng))
    pairs = zip(laws, levels, strict=True)
    hits = as_list(np.array([np.mean(law.argmax(axis=-1) == level) for law, level in pairs]))
    accuracy = float(np.mean(laws[0].argmax(axis=-1) == levels[0]))
    return {
        "label_belief": means[0],
        "level_belief": as_list(np.array(means[1:])),
        "test_accuracy": accuracy,
        "test_error": 1 - accuracy,
        "level_accuracy": hits[1:],
    }


def _belief(laws: np.ndarray, symbols: np.ndarray) -> float:
    """Mean probability of the true symbols."""
    return float(np.take_along_axis(laws, symbols[..., None].astype(np.intp), axis=-1).mean())


CHUNK_NUMBERS = 1 << 20
"""Pairs of tokens that are counted at a time."""


def pair_covariances(X: np.ndarray, target: np.ndarray, vocabulary: int) -> np.ndarray:
    """Covariance C(mu, nu) of a token (rows) and of each column of X, shape (columns, V, V)."""
    # `target` has shape (n,) and contains the token of each row.
    n, columns = X.shape
    cells = vocabulary * vocabulary
    counts = np.zeros(columns * cells, dtype=np.int64)
    offsets = cells * np.arange(columns)
    rows = max(1, CHUNK_NUMBERS // max(columns, 1))
    for start in range(0, n, rows):
        part = slice(start, start + rows)
        places = offsets + vocabulary * target[part, None].astype(np.int64) + X[part]
        counts += np.bincount(places.ravel(), minlength=counts.size)
    joint = counts.reshape(columns, vocabulary, vocabulary) / n
    return np.asarray(joint - joint.sum(axis=2, keepdims=True) * joint.sum(axis=1, keepdims=True))


def last_token_covariances(
    X: np.ndarray, vocabulary: int, branching: int
) -> tuple[np.ndarray, ...]:
    """Covariances of the last token and earlier ones, by the height of their common ancestor."""
    # Entry l - 1 has shape (s^l - s^(l-1), V, V): the earlier tokens whose lowest common ancestor with
    # the last token is l levels above the leaves, from left to right.
    length = X.shape[1]
    covariances = pair_covariances(X[:, :-1], X[:, -1], vocabulary)
    parts = []
    width = 1
    while width < length:
        parts.append(covariances[length - width * branching : length - width])
        width *= branching
    return tuple(parts)


def covariance_by_height(X: np.ndarray, vocabulary: int, branching: int) -> list[float]:
    """Root mean square of C(mu, nu) over symbols and earlier tokens, for each common ancestor."""
    # The list runs from a common ancestor just above the leaves to the label.
    parts = last_token_covariances(X, vocabulary, branching)
    return [float(np.sqrt(np.mean(part**2))) for part in parts]
