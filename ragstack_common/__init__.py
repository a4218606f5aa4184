"""What every RAGStack function shares: retrieval, ingestion, filters. Knows no Lambda and no HTTP."""
