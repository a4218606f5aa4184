"""The language models that can write answers. Start with ``protocol``."""
