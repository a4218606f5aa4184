"""Checks of the deployed stacks."""
