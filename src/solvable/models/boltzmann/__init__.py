"""Restricted Boltzmann machines with a few hidden units: likelihood, learner, theory, dynamics."""
