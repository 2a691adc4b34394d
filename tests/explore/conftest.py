from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.support.devtools import BROWSER, Browser


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    pytest.importorskip("websocket", reason="websocket-client is not installed")
    if BROWSER is None:
        pytest.skip("no Chromium is installed")
    tab = Browser(tmp_path_factory.mktemp("profile"))
    yield tab
    tab.close()
