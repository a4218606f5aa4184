"""Indexed documents against their files."""
