"""Storage: one SQLite file, and the vectors in memory."""
