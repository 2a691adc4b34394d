"""Rivals of `solvable learn` on tables, each tuned by a random search, for `learn_rivals.py`.

Budget of each rival: 10 random settings, each scored by a three-fold cross-validation of the training
rows (wrong predictions, or mean squared error). The numbers of trees and of epochs are chosen by
stopping early on the held-out fold; the Gaussian kernel tries 20 penalties for each of its 10 widths.
The best setting is fitted to all training rows, with the mean number of trees, epochs or iterations of
its three folds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

SETTINGS = 10
FOLDS = 3


@dataclass(frozen=True)
class Rows:
    """Training rows and rows to predict, in the forms that the rivals take."""

    frames: tuple[pd.DataFrame, pd.DataFrame]
    classes: int  # 0 for numbers
    y: (
        np.ndarray
    )  # codes of the classes, or numbers of mean 0 and deviation 1 over the training rows

    @property
    def texts(self) -> list[str]:
        """Names of the columns of text."""
        return [name for name, kind in self.frames[0].dtypes.items() if kind.kind == "O"]

    def numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """Return standardised columns, with a column of 0 and 1 for each text of three rows or more."""
        median = SimpleImputer(strategy="median", add_indicator=True)
        ones = OneHotEncoder(handle_unknown="infrequent_if_exist", min_frequency=3)
        others = [name for name in self.frames[0] if name not in self.texts]
        made = make_pipeline(
            make_column_transformer((median, others), (ones, self.texts), sparse_threshold=0),
            StandardScaler(),
        )
        first = np.asarray(made.fit_transform(self.frames[0]), dtype=np.float64)
        return first, np.asarray(made.transform(self.frames[1]), dtype=np.float64)

    def codes(self) -> tuple[np.ndarray, np.ndarray, list[int]]:
        """Return columns with missing values, texts as codes, and the places of these."""
        frames = [frame.copy() for frame in self.frames]
        if self.texts:
            coded = OrdinalEncoder(
                handle_unknown="use_encoded_value", unknown_value=np.nan, max_categories=250
            )
            coded.fit(frames[0][self.texts])
            for frame in frames:
                frame[self.texts] = coded.transform(frame[self.texts])
        places = [list(frames[0]).index(name) for name in self.texts]
        first, second = (frame.to_numpy(dtype=np.float64) for frame in frames)
        return first, second, places


def searched(
    rows: Rows, tried: Callable[[dict, Any, Any], tuple[float, float]], draw: Callable, seed: int
) -> tuple[dict, int]:
    """Return the best of the random settings and its mean number of steps."""
    rng = np.random.default_rng([seed, 71])
    folds = StratifiedKFold if rows.classes else KFold
    parts = list(folds(FOLDS, shuffle=True, random_state=seed).split(rows.y, rows.y))
    best: tuple[float, dict, int] = (np.inf, {}, 1)
    for _ in range(SETTINGS):
        setting = draw(rng)
        found = np.array([tried(setting, fit, held) for fit, held in parts])
        loss, steps = found.mean(axis=0)
        if loss < best[0]:
            best = (loss, setting, max(1, round(steps)))
    return best[1], best[2]


def loss_of(outputs: np.ndarray, y: np.ndarray) -> float:
    """Share of wrong predictions of codes, or mean squared error of numbers."""
    wrong = outputs != y if y.dtype.kind == "i" else (outputs - y) ** 2
    return float(np.mean(wrong))


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def hist_gradient_boosting(rows: Rows, seed: int) -> np.ndarray:
    """Boosted trees of scikit-learn."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    X, X_new, places = rows.codes()
    kind = HistGradientBoostingClassifier if rows.classes else HistGradientBoostingRegressor

    def draw(rng: np.random.Generator) -> dict:
        return {
            "learning_rate": log_uniform(rng, 0.03, 0.3),
            "max_leaf_nodes": int(rng.integers(3, 32)),
            "min_samples_leaf": int(rng.choice([2, 5, 10, 20])),
            "l2_regularization": log_uniform(rng, 1e-3, 10),
            "max_features": float(rng.choice([0.5, 1.0])),
        }

    def make(setting: dict, steps: int, patience: int) -> Any:
        stop = {"early_stopping": patience > 0, "n_iter_no_change": patience or 10, "tol": 0}
        return kind(
            categorical_features=places or None,
            max_iter=steps,
            random_state=seed,
            **stop,
            **setting,
        )

    def tried(setting: dict, fit: Any, held: Any) -> tuple[float, float]:
        model = make(setting, 300, 15).fit(X[fit], rows.y[fit], X_val=X[held], y_val=rows.y[held])
        # The first score belongs to the model without trees.
        steps = max(1, int(np.argmax(model.validation_score_)))
        return loss_of(model.predict(X[held]), rows.y[held]), steps

    setting, steps = searched(rows, tried, draw, seed)
    return np.asarray(make(setting, steps, 0).fit(X, rows.y).predict(X_new))


def lightgbm(rows: Rows, seed: int) -> np.ndarray:
    """Boosted trees of LightGBM."""
    from lightgbm import LGBMClassifier, LGBMRegressor, early_stopping

    X, X_new, places = rows.codes()
    kind = LGBMClassifier if rows.classes else LGBMRegressor
    common = {"n_jobs": 1, "verbose": -1, "random_state": seed, "subsample_freq": 1}

    def draw(rng: np.random.Generator) -> dict:
        return {
            "learning_rate": log_uniform(rng, 0.03, 0.3),
            "num_leaves": int(rng.integers(3, 32)),
            "min_child_samples": int(rng.choice([2, 5, 10, 20])),
            "reg_lambda": log_uniform(rng, 1e-3, 10),
            "subsample": float(rng.uniform(0.6, 1)),
            "colsample_bytree": float(rng.uniform(0.5, 1)),
        }

    def tried(setting: dict, fit: Any, held: Any) -> tuple[float, float]:
        model = kind(n_estimators=500, **common, **setting)
        model.fit(
            X[fit],
            rows.y[fit],
            eval_set=[(X[held], rows.y[held])],
            categorical_feature=places,
            callbacks=[early_stopping(15, verbose=False)],
        )
        return loss_of(model.predict(X[held]), rows.y[held]), model.best_iteration_

    setting, steps = searched(rows, tried, draw, seed)
    model = kind(n_estimators=steps, **common, **setting)
    return np.asarray(model.fit(X, rows.y, categorical_feature=places).predict(X_new))


def catboost(rows: Rows, seed: int) -> np.ndarray:
    """Boosted symmetric trees of CatBoost, with its own encoding of texts."""
    from catboost import CatBoostClassifier, CatBoostRegressor

    first, second = (
        frame.assign(**{name: frame[name].fillna("missing") for name in rows.texts})
        for frame in rows.frames
    )
    kind = CatBoostClassifier if rows.classes else CatBoostRegressor
    common = {
        "thread_count": 1,
        "verbose": False,
        "random_seed": seed,
        "allow_writing_files": False,
        "cat_features": rows.texts,
    }

    def draw(rng: np.random.Generator) -> dict:
        return {
            "learning_rate": log_uniform(rng, 0.03, 0.3),
            "depth": int(rng.integers(2, 7)),
            "l2_leaf_reg": log_uniform(rng, 0.3, 30),
            "random_strength": log_uniform(rng, 0.1, 10),
        }

    def tried(setting: dict, fit: Any, held: Any) -> tuple[float, float]:
        model = kind(iterations=300, **common, **setting)
        model.fit(
            first.iloc[fit],
            rows.y[fit],
            eval_set=(first.iloc[held], rows.y[held]),
            early_stopping_rounds=15,
        )
        predicted = model.predict(first.iloc[held]).reshape(-1)
        return loss_of(predicted, rows.y[held]), model.get_best_iteration() + 1

    setting, steps = searched(rows, tried, draw, seed)
    model = kind(iterations=steps, **common, **setting).fit(first, rows.y)
    return np.asarray(model.predict(second)).reshape(-1)


def xrfm(rows: Rows, seed: int) -> np.ndarray:
    """Recursive feature machine of the package xrfm; a single leaf at these sizes."""
    from xrfm import xRFM

    X, X_new = (numbers.astype(np.float32) for numbers in rows.numbers())
    y = rows.y if rows.classes else rows.y.astype(np.float32)

    def draw(rng: np.random.Generator) -> dict:
        return {
            "kernel": str(rng.choice(["l2", "l1"])),
            "bandwidth": log_uniform(rng, 1, 200),
            "exponent": float(rng.uniform(0.7, 1.4)),
            "bandwidth_mode": str(rng.choice(["constant", "adaptive"])),
            "diag": bool(rng.choice([False, True])),
            "reg": log_uniform(rng, 1e-6, 1),
        }

    def make(setting: dict, steps: int, choose: bool) -> Any:
        model = {name: value for name, value in setting.items() if name != "reg"}
        fit = {"reg": setting["reg"], "iters": steps, "verbose": False}
        fit |= {"return_best_params": choose, "early_stop_rfm": choose}
        return xRFM(
            rfm_params={"model": model, "fit": fit},
            device="cpu",
            n_threads=1,
            random_state=seed,
            verbose=False,
        )

    def predicted(model: Any, new: np.ndarray) -> np.ndarray:
        return np.asarray(model.predict(new)).reshape(-1)

    def tried(setting: dict, fit: Any, held: Any) -> tuple[float, float]:
        model = make(setting, 5, True).fit(X[fit], y[fit], X[held], y[held])
        steps = model.trees[0]["model"].best_iter
        return loss_of(predicted(model, X[held]), rows.y[held]), 5 if steps is None else steps

    setting, steps = searched(rows, tried, draw, seed)
    # The rows of validation have no influence, as no iteration is chosen.
    model = make(setting, steps, False).fit(X, y, X[:50], y[:50])
    return predicted(model, X_new)


def gaussian_kernel(rows: Rows, seed: int) -> np.ndarray:
    """Ridge regression with a Gaussian kernel, on the indicators of classes."""
    X, X_new = rows.numbers()
    signals = np.eye(rows.classes)[rows.y] if rows.classes else rows.y[:, None]
    penalties = np.logspace(-6, 2, 20)

    def squares(left: np.ndarray, right: np.ndarray) -> np.ndarray:
        sizes = np.sum(left**2, axis=1)[:, None] + np.sum(right**2, axis=1)
        return np.maximum(sizes - 2 * left @ right.T, 0)

    inside, outside = squares(X, X), squares(X_new, X)
    median = float(np.median(inside[inside > 0]))

    def outputs(width: float, fit: Any, new: np.ndarray) -> np.ndarray:
        """Return the outputs of all penalties from one eigendecomposition."""
        values, vectors = np.linalg.eigh(np.exp(-inside[np.ix_(fit, fit)] / (width * median)))
        mean = signals[fit].mean(axis=0)
        part = vectors.T @ (signals[fit] - mean)
        kernel = np.exp(-new[:, fit] / (width * median)) @ vectors
        return np.stack([mean + kernel @ (part / (values[:, None] + p)) for p in penalties])

    def decided(found: np.ndarray) -> np.ndarray:
        return found.argmax(axis=-1) if rows.classes else found[..., 0]

    def tried(setting: dict, fit: Any, held: Any) -> tuple[float, float]:
        found = decided(outputs(setting["width"], fit, inside[held]))
        losses = [loss_of(one, rows.y[held]) for one in found]
        # The penalty is averaged as steps of other rivals are.
        return min(losses), float(np.argmin(losses))

    def draw(rng: np.random.Generator) -> dict:
        return {"width": log_uniform(rng, 1 / 16, 16)}

    setting, step = searched(rows, tried, draw, seed)
    found = outputs(setting["width"], np.arange(len(X)), outside)
    return np.asarray(decided(found[min(step, len(penalties) - 1)]))


def wide_network(rows: Rows, seed: int) -> np.ndarray:
    """Network of one hidden layer of 1024, or two of 512, trained by AdamW."""
    import torch

    X, X_new = (torch.tensor(numbers, dtype=torch.float32) for numbers in rows.numbers())
    y = torch.tensor(rows.y, dtype=torch.int64 if rows.classes else torch.float32)
    width_out = rows.classes or 1
    losses = torch.nn.CrossEntropyLoss() if rows.classes else torch.nn.MSELoss()

    def draw(rng: np.random.Generator) -> dict:
        return {
            "sizes": [(1024,), (512, 512)][int(rng.integers(2))],
            "lr": log_uniform(rng, 3e-4, 1e-2),
            "weight_decay": log_uniform(rng, 1e-4, 1),
            "dropout": float(rng.choice([0.0, 0.2, 0.5])),
        }

    def make(setting: dict) -> Any:
        torch.manual_seed(seed)
        parts: list[Any] = []
        before = X.shape[1]
        for size in setting["sizes"]:
            parts += [torch.nn.Linear(before, size), torch.nn.ReLU()]
            parts.append(torch.nn.Dropout(setting["dropout"]))
            before = size
        net = torch.nn.Sequential(*parts, torch.nn.Linear(before, width_out))
        rates = {"lr": setting["lr"], "weight_decay": setting["weight_decay"]}
        return net, torch.optim.AdamW(net.parameters(), **rates)

    def epoch(net: Any, optimiser: Any, fit: Any) -> None:
        net.train()
        for part in torch.as_tensor(fit)[torch.randperm(len(fit))].split(128):
            optimiser.zero_grad()
            losses(
                net(X[part]).squeeze(-1) if not rows.classes else net(X[part]), y[part]
            ).backward()
            optimiser.step()

    def predicted(net: Any, new: Any) -> tuple[np.ndarray, Any]:
        net.eval()
        with torch.no_grad():
            found = net(new)
        return (found.argmax(1) if rows.classes else found[:, 0]).numpy(), found

    def tried(setting: dict, fit: Any, held: Any) -> tuple[float, float]:
        net, optimiser = make(setting)
        best, loss_then, steps = np.inf, np.inf, 0
        for step in range(1, 61):
            epoch(net, optimiser, fit)
            now, found = predicted(net, X[held])
            smooth = float(losses(found if rows.classes else found[:, 0], y[held]))
            if smooth < best:
                best, loss_then, steps = smooth, loss_of(now, rows.y[held]), step
            elif step >= steps + 8:
                break
        return loss_then, steps

    setting, steps = searched(rows, tried, draw, seed)
    net, optimiser = make(setting)
    for _ in range(steps):
        epoch(net, optimiser, np.arange(len(X)))
    return predicted(net, X_new)[0]


RIVALS: dict[str, Callable[[Rows, int], np.ndarray]] = {
    "Gaussian kernel": gaussian_kernel,
    "HistGradientBoosting": hist_gradient_boosting,
    "LightGBM": lightgbm,
    "CatBoost": catboost,
    "xRFM": xrfm,
    "wide network": wide_network,
}
"""Rivals, by their names in the table."""
