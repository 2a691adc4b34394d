"""Build hook: the README without pictures and links that only a checkout can resolve."""

from __future__ import annotations

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface


def for_package_index(text: str) -> str:
    """Return Markdown without relative pictures, and with the text of relative links alone.

    An index of packages shows the README next to none of the files that it links.
    """
    relative = r"\((?!https?:|mailto:|#)[^)\s]*\)"
    text = re.sub(rf"^!\[[^\]]*\]{relative}\n+", "", text, flags=re.MULTILINE)
    return re.sub(rf"\[([^\]]+)\]{relative}", r"\1", text)


class CustomMetadataHook(MetadataHookInterface):
    """Sets the readme of the package."""

    def update(self, metadata: dict) -> None:
        """Set the readme from README.md."""
        text = (Path(self.root) / "README.md").read_text("utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_package_index(text)}
