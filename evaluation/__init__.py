"""How well searches find what people judged to be relevant: ``ragstack eval``."""
