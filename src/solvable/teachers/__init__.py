"""Shared parts of targets: first layers, readouts, sampling and storage."""
