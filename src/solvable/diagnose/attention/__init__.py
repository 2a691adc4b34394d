"""Diagnosis of the query-key product of each attention head."""
