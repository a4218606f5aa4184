"""Reads Word documents: start with ``document``."""
