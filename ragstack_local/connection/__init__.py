"""Which stack a command talks to."""
