"""Parts of a system, judgement of its claims, and the registry of installed systems."""
