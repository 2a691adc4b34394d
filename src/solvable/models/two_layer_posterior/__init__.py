"""Two-layer networks with a posterior: how many samples a Hermite feature of one direction needs."""
