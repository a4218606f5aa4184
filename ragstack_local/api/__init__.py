"""Clients of the HTTP interface and of an engine."""
