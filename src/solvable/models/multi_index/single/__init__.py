"""Single-index models: one direction at any noise."""
