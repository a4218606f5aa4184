"""Documents to Markdown."""
