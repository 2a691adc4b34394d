"""Matrices estimated from linear measurements: symmetric signals, and regression on sequences."""
