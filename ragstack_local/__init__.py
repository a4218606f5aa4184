"""RAGStack on this machine: the local Bedrock, the local stack, and the command line."""
