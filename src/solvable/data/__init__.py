"""Data sets, tables of one's own, and sources larger than memory."""
