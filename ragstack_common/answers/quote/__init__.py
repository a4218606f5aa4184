"""Answers without a model: the sentences of the passages that answer a question. Start with ``quoting``."""
