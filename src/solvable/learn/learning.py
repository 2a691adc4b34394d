"""Learn features from a data set, and measure their error on unseen rows."""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from solvable.data.dataset import Dataset, NewData
from solvable.errors import InvalidData
from solvable.learn.blend import Blend, blend_of, blended, fitted_blend, without_chance
from solvable.learn.calibration import Reliability, reliability_of
from solvable.learn.competitors import BLEND, CONSTANT, LEARNED
from solvable.learn.directions import layers_found, made_of, pictures_of
from solvable.learn.fold_fits import Keeper, Measured, Task, can_be_narrow, measure_all, outputs_of
from solvable.learn.importance import Explained, explained, predicting
from solvable.learn.judged_rows import check_test, judged
from solvable.learn.metrics import roc_of
from solvable.learn.named_error import named_error, top_of, widened
from solvable.learn.plan import Plan
from solvable.learn.request import Metric, Request
from solvable.learn.results import CurvePoint, Learned, MethodScore, Outlook
from solvable.learn.row_errors import digest_of
from solvable.learn.scoring import Losses, by_metric, of_all_rows, outlook_of, score_methods
from solvable.learn.training_range import TrainingRange
from solvable.learn.warning_sentences import IN_GROUPS, warnings_of
from solvable.progress import Progress

NOTHING_FOUND = (
    "no direction was found and no model is clearly better than the constant, so there is no decrease "
    "of the error to extrapolate."
)
"""Reason why a table without signal gets no forecast."""

NO_MEAN = (
    "a few squared errors are so large that their mean over many new rows may be far larger than on "
    "these rows."
)
"""Reason why a table with very heavy tails gets no forecast."""


def fingerprint_of(dataset: Dataset, request: Request) -> tuple[str, str]:
    """Return two digests: one of the data set and request, one of the inputs alone."""
    data = digest_of(dataset.as_new)
    digest = hashlib.blake2b(data.encode(), digest_size=8)
    digest.update(np.ascontiguousarray(dataset.y).data)
    names = [dataset.columns, dataset.class_labels, dataset.kind, dataset.target]
    options = {name: value for name, value in asdict(request).items() if value is not None}
    digest.update(json.dumps([names, options]).encode())
    for codes in (dataset.groups, dataset.times):
        digest.update(b"" if codes is None else np.ascontiguousarray(codes).data)
    return digest.hexdigest(), data


def learn(
    dataset: Dataset,
    request: Request | None = None,
    *,
    workers: int = 1,
    progress: Progress | None = None,
    keeper: Keeper | None = None,
    test: NewData | None = None,
) -> Learned:
    """Learn features, compare methods on unseen rows, and forecast the error with more rows.

    Parameters
    ----------
    dataset : Dataset
        From :func:`solvable.data.load`.
    request : Request, optional
        Options of the run, such as folds, layers and seed.
    workers : int
        Number of processes.
    progress : callable, optional
        Called after every fit with the fits done, their total number and the seconds left.
    keeper : Keeper, optional
        Store of completed fits for a resumed run, such as
        :class:`solvable.learn.stored_fits.KeptFits`.
    test : NewData, optional
        Further rows with their target, from :func:`solvable.data.load_new`, on which the model fitted to
        all rows is judged.

    Returns
    -------
    Learned
        Errors of the methods, directions, forecast, and the recommended model fitted to all rows.

    Raises
    ------
    InvalidData
        If there are too few rows.
    MemoryLimitExceeded
        If a fit does not fit into memory.

    Notes
    -----
    Errors on unseen rows use rows that took no part in preparation, filters, penalties or widths.
    The leave-one-out error of a readout on filtered features is not reported, because it is biased:
    with random labels it is far below chance (arXiv:2605.13612; ``tests/learn/test_learning.py``).

    Examples
    --------
    >>> from solvable.data import load
    >>> found = learn(load("iris"), Request(folds=2, rows=60))
    >>> found.learned.error < 0.2
    True
    """
    start = time.perf_counter()
    if test is not None:
        check_test(test, dataset)
    plan = Plan(dataset, request or Request())
    options: dict[str, Any] = {"progress": progress, "keeper": keeper}
    if plan.request.seconds is not None:
        options["deadline"] = time.time() + plan.request.seconds
    # The recommended method is not known yet; a kernel takes a typical time.
    later = plan.later_tasks(["nngp"])
    measured = _compared(plan, later, workers=plan.workers(workers), **options)
    by_method, blend = _by_method(plan, measured)
    chosen = _chosen(_scored(plan, measured, by_method, blend)[0])
    tasks = plan.later_tasks(_members(chosen, blend))
    before = len(plan.tasks)
    measured += measure_all(tasks, workers=plan.workers(workers), before=before, **options)
    found = _assembled(plan, measured)
    if test is not None:
        found = replace(found, test=judged(found, test, dataset))
    return replace(found, seconds=time.perf_counter() - start)


def _compared(plan: Plan, later: Sequence[Task], **options: Any) -> list[Measured]:
    """Make the fits that the choice needs; a method without a chance after two folds is stopped."""
    first = [task for task in plan.tasks if task.fold < 2]
    rest = [task for task in plan.tasks if task.fold >= 2]
    if not plan.can_stop or not rest:
        return measure_all(plan.tasks, after=later, **options)
    measured = measure_all(first, after=[*rest, *later], **options)
    fits = {
        method.key: [fit for fit in measured if fit.method == method.key and plan.is_full(fit)]
        for method in plan.methods
    }
    for part in fits.values():
        part.sort(key=lambda fit: fit.fold)
    stopped = without_chance(fits, plan.y, plan.folds, classes=plan.classes)
    left = [task for task in rest if task.method not in stopped]
    before = len(first) + len(rest) - len(left)
    measured += measure_all(left, before=before, after=later, **options)
    return measured + [
        Measured(task.method, task.fold, task.rows, np.empty(0), failure=stopped[task.method])
        for task in rest
        if task.method in stopped
    ]


def _by_method(
    plan: Plan, measured: list[Measured]
) -> tuple[dict[str, list[Measured]], Blend | None]:
    """Return the fits to all training rows of each fold, in the order of the folds, and the blend."""
    ordered = sorted(measured, key=lambda fit: fit.fold)
    found = {
        method.key: [fit for fit in ordered if fit.method == method.key and plan.is_full(fit)]
        for method in plan.methods
    }
    blend = blend_of(found, plan.y, plan.folds, classes=plan.classes)
    return (found | {BLEND: blend.fits} if blend else found), blend


def _members(chosen: str, blend: Blend | None) -> list[str]:
    """Return the chosen method, or the methods of the blend if that is chosen."""
    return list(blend.weights) if blend and chosen == BLEND else [chosen]


def _losses(plan: Plan) -> Losses:
    return Losses(
        plan.y,
        plan.folds,
        regression=plan.design.regression,
        clusters=plan.dealt.clusters(),
        columns=plan.dataset.X[plan.rows[plan.folds >= 0]],
    )


def _scored(
    plan: Plan,
    measured: list[Measured],
    by_method: dict[str, list[Measured]],
    blend: Blend | None,
) -> tuple[tuple[MethodScore, ...], Metric | None]:
    """Return the scores of all methods, one of them recommended, and the metric that decides."""
    losses, compared = _losses(plan), list(plan.methods)
    if blend:  # above the constant, which stays the last
        compared.insert(-1, blend.method(compared))
    labels, better = plan.dataset.class_labels, bool(blend and blend.is_better)
    scores = score_methods(compared, by_method, losses, labels, blended=better)
    metric = plan.request.metric
    if metric is not None:
        scores = by_metric(metric, scores, by_method, losses)
    elif plan.classes and _chosen(scores) == CONSTANT:
        # Probabilities may carry signal even if no method has clearly fewer wrong predictions.
        by_loss = by_metric("log-loss", scores, by_method, losses)
        if _chosen(by_loss) != CONSTANT:
            scores, metric = by_loss, "log-loss"
    final = _of_all_rows(measured, LEARNED)
    return (of_all_rows(scores[0], final), *scores[1:]), metric


def _chosen(scores: Sequence[MethodScore]) -> str:
    return next(score.key for score in scores if score.recommended)


def _of_all_rows(measured: list[Measured], method: str) -> Measured:
    """Return the fit of a method to all rows."""
    fit = next(fit for fit in measured if fit.fold < 0 and fit.method == method)
    if fit.failure:
        raise InvalidData(f"the recommended model could not be fitted to all rows: {fit.failure}")
    return fit


def _assembled(plan: Plan, measured: list[Measured]) -> Learned:
    """Combine all fits into the result."""
    request, dataset = plan.request, plan.dataset
    fingerprint, data_fingerprint = fingerprint_of(dataset, request)
    losses, (by_method, blend) = _losses(plan), _by_method(plan, measured)
    methods, metric = _scored(plan, measured, by_method, blend)
    chosen = _chosen(methods)
    final, learned = _of_all_rows(measured, LEARNED), by_method[LEARNED]
    predictions = np.empty(len(plan.y))
    tested = plan.folds >= 0
    for fit in by_method[chosen]:
        predictions[plan.folds == fit.fold] = fit.predicted
    signals = dataset.class_labels if len(dataset.class_labels) > 2 else (dataset.target,)
    tests = [dataset.X[plan.rows[plan.folds == fit.fold]] for fit in learned]
    made = made_of(final.model, final.attribution, [fit.unseen for fit in learned], tests)
    beats = methods[0].beats_constant
    counts = [fit.above if beats else fit.n_significant for fit in learned]
    found = layers_found(final.model, counts, signals, made, confirmed=beats)
    warnings, grouped = warnings_of(dataset, plan.dealt, request.seed)
    # Without a model better than the constant, the curve is that of the learned features.
    drawn = LEARNED if chosen == CONSTANT else chosen
    curve = curve_of(plan, measured, losses, drawn, blend)
    if grouped:
        outlook = Outlook(curve, verdict=IN_GROUPS)
    elif found[0].directions or chosen != CONSTANT:
        # Correlation of the errors of folds, which share training rows (Nadeau and Bengio 2003).
        shared = 1 / (request.folds * plan.smallest)
        rows = None if losses.regression else float(tested.sum())
        outlook = outlook_of(
            curve, len(plan.y), shared=shared, tested=rows, error=request.error, seed=request.seed
        )
        if chosen != CONSTANT:
            error = named_error(methods, metric, by_method, losses, outlook.confidence)
            top = min(top_of(methods, by_method, losses), math.inf if losses.regression else 1.0)
            outlook = (
                Outlook(curve, verdict=NO_MEAN)
                if math.isinf(error.upper)
                else widened(outlook, error, top=top)
            )
    else:
        outlook = Outlook(curve, verdict=NOTHING_FOUND)
    error = named_error(
        methods, metric, by_method, losses, curve=() if chosen == CONSTANT else curve
    )
    model = _model(plan, measured, by_method, chosen, blend)
    reliability = _reliability(plan, by_method[chosen])
    return Learned(
        name=dataset.name,
        n_samples=len(plan.y),
        n_columns=dataset.n_columns,
        kind=dataset.kind,
        class_labels=dataset.class_labels,
        target=dataset.target,
        target_deviation=math.sqrt(losses.variance) if losses.regression else None,
        image_shape=dataset.image_shape,
        treatments=(*dataset.treatments, *plan.notes),
        network=plan.network,
        protocol=plan.protocol,
        folds=request.folds,
        seed=request.seed,
        layers=request.layers,
        methods=methods,
        interval=(error.lower, error.upper),
        found=found,
        outlook=replace(outlook, method=drawn),
        fingerprint=fingerprint,
        data_fingerprint=data_fingerprint,
        versions={name: version(name) for name in ("solvable", "numpy", "scipy", "scikit-learn")},
        model=model,
        features=final.model,
        preparation=dataset.preparation,
        metric=metric or "",
        reliability=reliability,
        roc=roc_of(by_method[chosen], plan.y, plan.folds, losses.clusters)
        if plan.classes == 2
        else None,
        pictures=pictures_of(final.model, dataset.X[plan.rows], dataset.image_shape),
        predictions=predictions[tested],
        truth=plan.y[tested],
        rows=plan.rows[tested],
        row_folds=plan.folds[tested],
        warnings=warnings,
        explained=_explained(plan, measured, by_method, chosen, blend, losses, model, reliability),
        range=TrainingRange.of(dataset.X[plan.rows], plan.y, plan.classes),
        in_time=plan.dealt.times is not None,
    )


def _reliability(plan: Plan, fits: list[Measured]) -> Reliability | None:
    """Calibrate the outputs of a method on the held-out rows; None for numbers."""
    classes = len(plan.dataset.class_labels)
    outputs = [fit.scores for fit in fits if fit.scores is not None]
    width = {one.shape[1:] for one in outputs}
    # A class that is missing in the training rows of a fold has no output there.
    if (
        plan.design.regression
        or len(outputs) < len(fits)
        or width - {(), (classes,)}
        or len(width) != 1
    ):
        return None
    codes = [plan.y[plan.folds == fit.fold].astype(np.int64) for fit in fits]
    return reliability_of(outputs, codes, classes)


def _model(
    plan: Plan,
    measured: list[Measured],
    by_method: dict[str, list[Measured]],
    chosen: str,
    blend: Blend | None,
) -> Any:
    """Return the recommended model, fitted to all rows."""
    if not blend or chosen != BLEND:
        return _of_all_rows(measured, chosen).model
    models = {key: _of_all_rows(measured, key).model for key in blend.weights}
    return _blended_model(plan, by_method, blend, models)


def _blended_model(
    plan: Plan, by_method: dict[str, list[Measured]], blend: Blend, models: dict[str, Any]
) -> Any:
    return fitted_blend(
        blend.weights,
        models,
        by_method,
        plan.y,
        plan.folds,
        classes=plan.classes,
        columns=plan.dataset.X.shape[1],
    )


def _explained(
    plan: Plan,
    measured: list[Measured],
    by_method: dict[str, list[Measured]],
    chosen: str,
    blend: Blend | None,
    losses: Losses,
    model: Any,
    reliability: Reliability | None,
) -> Explained:
    """Explain the recommended model by its columns, with the models of the folds on their test rows."""
    if chosen == CONSTANT or plan.dataset.image_shape is not None:
        return Explained()
    if plan.classes and reliability is None:  # without probabilities there is no smooth loss
        return Explained()
    probabilities = None
    if reliability is not None:
        calibration, classes = reliability.calibration, plan.classes

        def probabilities(one: Any, X: np.ndarray) -> np.ndarray:
            outputs = np.asarray(outputs_of(one, X))
            return calibration.probabilities(outputs)[:, :classes]

        skill = reliability.constant_log_loss - reliability.log_loss
    else:
        own, none = (losses.of_all(by_method[key]) for key in (chosen, CONSTANT))
        assert own is not None
        assert none is not None
        skill = float(none.mean() - own.mean())
    members, folds, X_all = _members(chosen, blend), [], plan.dataset.X[plan.rows]
    narrow = can_be_narrow(X_all)
    for fold in range(plan.request.folds):
        fits = [fit for key in members for fit in by_method[key] if fit.fold == fold]
        if any(fit.model is None for fit in fits):
            continue
        one = fits[0].model
        if blend and chosen == BLEND:
            of_fold = {fit.method: fit.model for fit in fits}
            one = _blended_model(plan, by_method, blend, of_fold)
        folds.append((predicting(one, probabilities, narrow=narrow), plan.split_of(fold)()))
    with threadpool_limits(limits=1):
        return explained(
            folds,
            predicting(model, probabilities, narrow=narrow),
            X_all,
            plan.dataset.preparation,
            labels=plan.dataset.class_labels,
            skill=skill,
            scale=losses.variance,
            seed=plan.request.seed,
        )


def _fits_of_curve(
    plan: Plan, measured: list[Measured], method: str, blend: Blend | None
) -> list[Measured]:
    """Return all fits of a method to training rows of folds, in the order of the folds."""
    fits = [fit for fit in measured if fit.fold >= 0 and not fit.failure]
    fits.sort(key=lambda fit: fit.fold)
    if not blend or method != BLEND:
        return [fit for fit in fits if fit.method == method]
    found = list(blend.fits)
    for size in plan.sizes:
        parts = {
            key: [fit for fit in fits if (fit.method, fit.training_rows) == (key, size)]
            for key in blend.weights
        }
        known = {fit.fold for fit in found if fit.training_rows == size}
        if not known and {len(part) for part in parts.values()} == {plan.request.folds}:
            found += blended(blend.weights, parts, plan.y, plan.folds, classes=plan.classes)
    return sorted(found, key=lambda fit: fit.fold)


def curve_of(
    plan: Plan, measured: list[Measured], losses: Losses, method: str, blend: Blend | None
) -> tuple[CurvePoint, ...]:
    """Return the learning curve of a method."""
    fits = _fits_of_curve(plan, measured, method, blend)
    points = []
    for size in plan.sizes:
        last = size == plan.sizes[-1]
        whole = last and plan.dealt.times is None
        here = [fit for fit in fits if (plan.is_full(fit) if whole else fit.training_rows == size)]
        # A training-set size is left out if a fold's training rows of that size have one class only.
        if len(here) == plan.request.folds:
            errors = tuple(float(losses.of_fold(fit.fold, fit.predicted).mean()) for fit in here)
            counts = tuple(fit.n_significant[0] for fit in here if fit.n_significant)
            points.append(CurvePoint(size, errors, counts))
    return tuple(points)
