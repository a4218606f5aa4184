"""Backends around other backends."""
