"""Layer-wise filtered networks for real data."""
