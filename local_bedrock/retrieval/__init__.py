"""Search: rankings, what a request asks for, results, and reranking."""
