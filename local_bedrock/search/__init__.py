"""Search and rerank."""
