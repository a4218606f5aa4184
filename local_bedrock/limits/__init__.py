"""Quotas and fault injection."""
