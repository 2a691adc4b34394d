"""What several learners fit with."""
