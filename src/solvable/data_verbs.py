"""One Python function per tool for real data, which returns what its command prints.

Each function imports its modules when it is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from solvable.diagnose.checkpoints.history import DiagnosedCheckpoints
    from solvable.diagnose.diagnosed import Diagnosed
    from solvable.forecast import Forecast, LearningCurve
    from solvable.learn.applied import Applied
    from solvable.learn.request import Metric
    from solvable.learn.results import Learned
    from solvable.models.multi_index.activations import Activations
    from solvable.progress import Progress


def learn_features(
    data: Any,
    y: Any = None,
    /,
    *,
    target: str | None = None,
    task: Literal["auto", "classification", "regression"] = "auto",
    keep: Sequence[str] = (),
    missing: Sequence[str] = (),
    numbers: Sequence[str] = (),
    categories: Sequence[str] = (),
    exclude: Sequence[str] = (),
    groups: str | None = None,
    time: str | None = None,
    test: Any = None,
    metric: Metric | None = None,
    image_size: int | Sequence[int] | str | None = None,
    colour: Literal["auto", "grey", "rgb"] = "auto",
    folds: int = 5,
    layers: int = 1,
    rows: int = 20_000,
    seed: int = 0,
    seconds: float | None = None,
    error: float | None = None,
    output: str | Path | None = None,
    workers: int | None = None,
    progress: Progress | bool | None = None,
) -> Learned:
    """Learn features layer by layer, and measure their error on unseen rows: ``solvable learn``.

    Parameters
    ----------
    data : path, str, data frame, array or Dataset
        CSV, NPZ or Parquet file, folder, or name of a data set; a data frame of pandas, polars or Arrow;
        or inputs X, shape (n, d) or images.
    y : array or column, optional
        Labels of the rows of X, shape (n,).
    target : str, optional
        Column to predict, or name of the labels y.
    task : {"auto", "classification", "regression"}
        Kind of target; "auto" decides by its values.
    keep : sequence of str
        Columns to use even if they look like row numbers.
    missing : sequence of str
        Further texts or numbers that denote a missing value, in every column.
    numbers, categories, exclude : sequence of str
        Columns of numbers, whose words count as missing; columns whose numbers are names of categories;
        columns that are not used.
    groups : str, optional
        Column of persons, devices or days; rows with the same entry are tested together.
    time : str, optional
        Column of dates or numbers; rows are predicted from earlier rows.
    test : path, str or data frame, optional
        Further rows with the target, on which the model fitted to all rows is judged.
    metric : {"accuracy", "balanced-accuracy", "auc", "log-loss", "r2", "mae"}, optional
        Measure by which methods are chosen; by default the share of wrong predictions, or the variance
        not explained.
    image_size : int, (int, int) or str, optional
        Height and width to which PNG and JPEG images are resized.
    colour : {"auto", "grey", "rgb"}
        Colours of PNG and JPEG images; "auto" is grey unless a pixel has colour.
    folds : int
        Parts of the data, 2 to 20; each is predicted from the others.
    layers : int
        Filters, 1 to 5, each with a layer below it.
    rows : int
        Largest number of rows; from more rows a random subset is taken.
    seed : int
        Seed of the folds and random layers.
    seconds : float, optional
        Time after which no further method is fitted.
    error : float, optional
        Share of wrong predictions, or of variance not explained, for which the number of rows is wanted.
    output : path, optional
        Directory for the files of the command, among them ``model.safetensors``; by default no file is
        written.
    workers : int, optional
        Local processes; default one per core.
    progress : callable or bool, optional
        ``progress(done, total, seconds_left)``, called after each fit. True shows a bar in a notebook
        or on a terminal, and a line a minute elsewhere.

    Returns
    -------
    Learned
        Scores, directions, forecast, and the model fitted to all rows.

    Raises
    ------
    InvalidData, InvalidParameter
        If the data cannot be learned from, or an argument is out of range.
    MemoryLimitExceeded
        If a fit does not fit into memory.

    Examples
    --------
    >>> import solvable
    >>> solvable.learn_features("iris", folds=2, rows=60, workers=1).learned.error < 0.2
    True
    """
    from solvable.data import load as load_data
    from solvable.data import load_new
    from solvable.data.dataset import Dataset
    from solvable.learn import Request, learn
    from solvable.learn.files import reserve, write_files
    from solvable.progress import reporter
    from solvable.study.dispatch import count_workers

    request = Request(folds, layers, rows, seed, metric, seconds, error)
    lanes = count_workers(workers)
    if not isinstance(data, Dataset):
        options: dict[str, Any] = {"groups": groups, "time": time, "missing": missing}
        options |= {"numbers": numbers, "categories": categories, "exclude": exclude}
        options |= {"image_size": image_size, "colour": colour}
        data = load_data(data, y, target=target, task=task, keep=tuple(keep), **options)
    tested = None if test is None else load_new(test, data.preparation)
    if output is None:
        with reporter(progress, "fits") as report:
            return learn(data, request, workers=lanes, progress=report, test=tested)
    directory, kept = reserve(data, request, Path(output))
    with reporter(progress, "fits") as report:
        found = learn(data, request, workers=lanes, progress=report, keeper=kept, test=tested)
    write_files(found, data, directory, command="")
    kept.remove()
    return found


def predict_rows(model: str | Path | Learned, data: Any, /) -> Applied:
    """Predict new rows with a model of :func:`learn_features`: ``solvable predict``.

    Parameters
    ----------
    model : path or Learned
        File ``model.safetensors`` or the directory that contains it, or a result of
        :func:`learn_features`.
    data : path, str, data frame or array
        Data as for :func:`learn_features`, with or without the target. Columns are matched by name.

    Returns
    -------
    Applied
        Predictions in ``predicted``, and the error if the data contain the target.

    Raises
    ------
    InvalidData
        If the model cannot be read, or the data lack a column of the model.

    Examples
    --------
    >>> import solvable
    >>> found = solvable.learn_features("iris", folds=2, rows=60, workers=1)
    >>> solvable.predict_rows(found, "iris").predicted[:2].tolist()
    ['setosa', 'setosa']
    """
    from solvable.learn.prediction import apply_model

    if isinstance(model, (str, Path)):
        model = Path(model) / "model.safetensors" if Path(model).is_dir() else Path(model)
    return apply_model(model, data)


def diagnose_weights(
    weights: Any,
    /,
    *,
    initial: Any = None,
    key: str | None = None,
    quick: bool = False,
    heads: int | None = None,
    pairs: Sequence[tuple[str, str]] = (),
    inputs_first: bool = False,
    seed: int = 0,
    workers: int | None = None,
    memory: float | None = None,
    progress: Progress | bool | None = None,
) -> Diagnosed:
    """Separate noise from learned features in weight matrices: ``solvable diagnose``.

    Parameters
    ----------
    weights : path, mapping, module or estimator
        A folder as model hubs lay it out, or a file: ``.safetensors``, ``.npz``, ``.npy``, ``.pt``,
        ``.pth``, ``.bin``, ``.onnx``, ``.h5``, ``.keras`` or ``.gguf``; nothing in it is ever
        executed. Or an object: a state dict or another dictionary of arrays, a torch module, a Keras
        model, or a fitted ``MLPClassifier`` or ``MLPRegressor`` of scikit-learn.
    initial : path or object, optional
        The weights before training, under the same names.
    key : str, optional
        Dictionary in a checkpoint, such as ``"ema"``; inner ones by dots. Default: the state dict of the
        model.
    quick : bool
        Only lower bound, stable rank, outliers and change of each matrix, in a tenth of the time: no
        law is fitted.
    heads : int, optional
        Attention heads in each pair of query and key; default from the metadata of the file or the
        ``config.json`` next to it.
    pairs : sequence of (str, str)
        Names of query and key matrices; by default recognised from the names in the file.
    inputs_first : bool
        Whether the arrays of ``pairs`` are (inputs, outputs).
    seed : int
        Seed of the bootstraps.
    workers : int, optional
        Local processes; default one per core, fewer for small matrices.
    memory : float, optional
        Gigabytes that all processes together may use; default 4, or half of the free memory if that is
        less.
    progress : callable or bool, optional
        ``progress(done, total, seconds_left)``, called after each array. True shows a bar in a notebook
        or on a terminal, and a line a minute elsewhere.

    Returns
    -------
    Diagnosed
        One row per array and per attention head; after Ctrl-C the finished ones.

    Raises
    ------
    InvalidData, InvalidParameter
        If the weights cannot be read or contain no array, or a pair is missing or has unequal inner
        sizes.

    Examples
    --------
    >>> import numpy, solvable
    >>> noise = numpy.random.default_rng(0).standard_normal((60, 200))
    >>> found = solvable.diagnose_weights({"layer": noise, "head": noise[:3]}, workers=1)
    >>> [(row.name, row.phase) for row in found.matrices]
    [('layer', 'random-like'), ('head', 'not fitted')]
    >>> round(found.matrices[1].stable_rank, 1)
    2.7
    """
    from solvable.diagnose.attention.heads_of_file import AttentionRequest
    from solvable.diagnose.matrices_of_file import diagnose_whole, opened
    from solvable.progress import reporter
    from solvable.study.dispatch import count_workers

    lanes = count_workers(workers)
    request = AttentionRequest(heads, tuple((str(q), str(k)) for q, k in pairs), inputs_first)
    with reporter(progress, "arrays") as report:
        return diagnose_whole(
            opened(weights, key),
            initial=initial,
            request=request,
            laws=not quick,
            progress=report,
            seed=seed,
            workers=lanes,
            memory=memory,
        )


def diagnose_checkpoints(
    checkpoints: Any,
    /,
    *,
    order: Literal["name", "time", "given"] = "name",
    heads: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    progress: Progress | bool | None = None,
) -> DiagnosedCheckpoints:
    """Follow directions, stable rank and norm of each matrix along training: ``solvable diagnose``.

    Parameters
    ----------
    checkpoints : path, sequence or dictionary
        A folder of checkpoints; or paths, state dicts or models in a list; or a dictionary from steps
        to them. Each is read as by :func:`solvable.diagnose_weights`.
    order : {"name", "time", "given"}
        Order of files: by the step or epoch in their names, by the time of writing, or as given.
    heads : int, optional
        Number of attention heads, for fused projections stored head by head.
    seed : int
        Seed of the random signs.
    workers : int, optional
        Local processes; default one per core.
    progress : callable or bool, optional
        ``progress(done, total, seconds_left)``, called after each matrix of each checkpoint.

    Returns
    -------
    DiagnosedCheckpoints
        One history per matrix, with the checkpoint at which it stopped changing.

    Raises
    ------
    InvalidData, InvalidParameter
        If fewer than two checkpoints can be read, they share no matrix, or an argument is out of
        range.

    Notes
    -----
    The weights stopped changing at the first checkpoint from which on their distance to the last
    weights is below 1 % of the norm, or does not grow with the separation. One checkpoint is read at a
    time, and one matrix of it is in memory. Backed by ``tests/diagnose/test_checkpoints.py``.

    Examples
    --------
    >>> import numpy, solvable
    >>> rng = numpy.random.default_rng(0)
    >>> noise, spike = rng.standard_normal((60, 200)), numpy.full((60, 200), 0.1)
    >>> found = solvable.diagnose_checkpoints(
    ...     {step: {"layer": noise + step * spike} for step in (0, 10, 20)}, workers=1
    ... )
    >>> found.histories[0].values("directions")
    [0, 1, 1]
    """
    from solvable.arrays import check_integer
    from solvable.diagnose.checkpoints.measuring import diagnose_series
    from solvable.diagnose.checkpoints.series import open_series
    from solvable.progress import reporter
    from solvable.study.dispatch import count_workers

    check_integer("seed", seed, 0)
    lanes = count_workers(workers)
    series = open_series(checkpoints, order=order)
    with reporter(progress, "matrices") as report:
        return diagnose_series(series, heads=heads, seed=seed, workers=lanes, progress=report)


def forecast_curve(
    curve: str | Path | LearningCurve | Any,
    /,
    *,
    at: Sequence[float] = (),
    factors: Sequence[float] | None = None,
    confidence: float = 0.9,
    of: Literal["mean", "measurement"] = "mean",
    error: float | None = None,
    seed: int = 0,
) -> Forecast:
    """Extrapolate a measured learning curve, with intervals: ``solvable forecast``.

    Parameters
    ----------
    curve : path, data frame, dict, tuple or LearningCurve
        CSV file with columns n and error (and replicate), such columns in memory, the result of
        scikit-learn's ``learning_curve``, or the curve itself.
    at : sequence of float
        Sample sizes to predict.
    factors : sequence of float, optional
        Multiples of the largest measured size; (2, 4) unless ``at`` is given.
    confidence : float
        Level of the intervals, 0.5 to 0.99.
    of : {"mean", "measurement"}
        Interval of the mean error, or of one new measurement.
    error : float, optional
        Error for which the number of samples is wanted.
    seed : int
        Seed of the bootstrap.

    Returns
    -------
    Forecast
        With ``refusal`` set if the curve must not be extrapolated.

    Raises
    ------
    InvalidData, InvalidParameter
        If the file is not a curve, or an argument is out of range.

    Examples
    --------
    >>> import numpy, solvable
    >>> n = numpy.repeat([100, 200, 400, 800, 1600], 3)
    >>> errors = (0.05 + 2 * n**-0.6) * numpy.tile([0.99, 1.0, 1.01], 5)
    >>> curve = solvable.forecast.LearningCurve(n, errors)
    >>> [point.samples for point in solvable.forecast_curve(curve, at=[3200]).predictions]
    [3200.0]
    """
    from threadpoolctl import threadpool_limits

    from solvable.forecast import LearningCurve, forecast

    curve = LearningCurve.of(curve)
    with threadpool_limits(limits=1):
        return forecast(
            curve,
            at=tuple(at),
            factors=factors,
            confidence=confidence,
            of=of,
            error=error,
            seed=seed,
        )


def activations_of(
    *names: str,
    noise: float = 1.0,
    directions: int | None = None,
    decay: float | None = None,
) -> Activations:
    """Noise sensitivity of activations and the samples they need: ``solvable activations``.

    Parameters
    ----------
    *names : str
        Names or formulas of activations, as of :func:`solvable.links.make_link`.
    noise : float
        Variance of the label noise, at least 0; activations are standardised.
    directions : int, optional
        Number of directions of equal amplitude, 1 to 512; default 1.
    decay : float, optional
        Exponent of amplitudes that fall with a power of the feature, 0 to 10; 16 directions unless
        ``directions`` is given.

    Returns
    -------
    Activations
        One row per activation: exponents, thresholds, and their description.

    Raises
    ------
    InvalidParameter
        If a formula is not understood, or a number is out of range.

    Examples
    --------
    >>> import solvable
    >>> relu, cosmix = solvable.activations_of("relu", "cosmix", noise=100.0).rows
    >>> relu.noise_sensitivity_exponent, relu.threshold_ratio
    (1, 0.0)
    >>> cosmix.noise_sensitivity_exponent, round(cosmix.threshold_ratio)
    (2, 6464)
    """
    from solvable.models.multi_index.activations import compare_activations

    return compare_activations(names, noise=noise, directions=directions, decay=decay)
