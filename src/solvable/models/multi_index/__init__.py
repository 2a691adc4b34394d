"""Multi-index models: a few hidden directions of Gaussian inputs, each through a link function."""
