"""What the local Bedrock keeps: one SQLite file, and its vectors in memory beside it."""
