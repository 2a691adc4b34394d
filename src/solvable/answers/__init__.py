"""Answers of the tools: sections of sentences, tables and figures, for a terminal and a page."""
