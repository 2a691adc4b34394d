"""Estimate matrices from linear measurements: symmetric signals, and regression on token sequences."""
