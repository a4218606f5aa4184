"""Bucket, registry and knowledge base, compared."""
