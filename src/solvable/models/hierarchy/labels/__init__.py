"""The system `label-hierarchy`: labels that are products of simpler labels, learned block by block."""
