"""Energies and samples at given sizes, with the coefficients that exponents leave out."""
