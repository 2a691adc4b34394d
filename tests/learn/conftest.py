from __future__ import annotations

from collections.abc import Iterator

import pytest

from solvable.learn import design


@pytest.fixture(scope="module", autouse=True)
def narrow_random_features() -> Iterator[None]:
    """Use fewer random features than by default, as these take half of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design, "DEFAULT_WIDTH", 200)
        yield
