"""Reads OpenDocument files: start with ``documents``, ``presentations`` or ``spreadsheets``."""
