"""Diagnosis of the product of query and key of each attention head."""
