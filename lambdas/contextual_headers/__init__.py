"""The function that gives the chunks of a knowledge base their contextual headers."""
