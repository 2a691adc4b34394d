"""Checks of records that several families share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from few_draws import few_draws


@pytest.fixture(scope="module")
def few() -> Iterator[None]:
    """Average theories over few draws in a whole file."""
    with few_draws():
        yield


@pytest.fixture(scope="session")
def check_recovery() -> Callable[..., None]:
    """Function that checks the overlaps and errors of a given number of features in a record."""

    def check(
        parameters: Any, record: Mapping[str, Any], prediction: Mapping[str, Any], features: int
    ) -> None:
        overlaps = np.asarray(record["squared_overlap"])
        assert overlaps.shape == (features,)
        assert (overlaps >= 0).all()
        assert (overlaps <= 1 + 1e-6).all()
        assert record["normalised_mse"] > 0
        if parameters.degree == 3:
            assert "at degree 3" in prediction["no prediction"]
            assert prediction["normalised_mse"] is None
        else:
            assert np.isfinite(prediction["squared_overlap"]).all()
            if (
                getattr(parameters, "layers", 3) > 4
            ):  # the error of such deep targets is not predicted
                assert prediction["normalised_mse"] is None
            else:
                assert prediction["normalised_mse"] > 0

    return check
