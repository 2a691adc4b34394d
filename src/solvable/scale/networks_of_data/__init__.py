"""Descriptions of real models and data sets for scaling arguments."""
