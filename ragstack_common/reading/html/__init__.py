"""Reads web pages: start with ``pages``."""
