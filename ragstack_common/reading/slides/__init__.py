"""Reads presentations: start with ``powerpoint``."""
