"""Learners of the random hierarchy model."""
