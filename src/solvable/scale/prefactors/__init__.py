"""Energies and numbers of samples at given sizes, including prefactors."""
