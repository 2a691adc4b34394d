"""Systems: target + learner + theory + claims under one name."""
