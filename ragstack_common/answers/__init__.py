"""Answers from passages, with verified citations."""
