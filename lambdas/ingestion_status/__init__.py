"""Accepted documents to final states."""
