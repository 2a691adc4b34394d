"""Exact phase diagrams of sample exponents: polygons with rational corners."""
