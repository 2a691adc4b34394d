"""What several targets draw from."""
