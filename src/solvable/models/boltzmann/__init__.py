"""Restricted Boltzmann machines of a few hidden units: likelihood, learners, theory, dynamics."""
