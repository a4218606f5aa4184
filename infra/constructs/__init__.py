"""Constructs own resources: one per capability."""
