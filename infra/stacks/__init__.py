"""Stacks compose constructs, and own no resource."""
