"""Placeholder."""


class StreamingMixin:
    pass
