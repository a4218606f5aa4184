"""Tokens of people to what API Gateway may let pass."""
