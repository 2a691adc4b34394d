"""Copies of files of weights in which some arrays are replaced and everything else stays as it is."""
