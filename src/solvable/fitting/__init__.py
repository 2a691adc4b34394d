"""Inputs, ridge regressions, kernels, splits and files that several learners share."""
