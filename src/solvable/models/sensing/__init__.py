"""Matrices from linear measurements: symmetric ones, and regression on sequences."""
