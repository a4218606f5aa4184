"""Whether an answer's quotations and citations hold. Start with ``citations``."""
