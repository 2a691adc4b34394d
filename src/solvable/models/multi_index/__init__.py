"""Multi-index models: labels depend on a few hidden directions of Gaussian inputs."""
