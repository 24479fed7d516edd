"""Measurements: each prints a table and saves JSON."""
