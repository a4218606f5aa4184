"""Words, languages, sections and positions of texts."""
