"""Single-index models: estimators of one direction at any noise."""
