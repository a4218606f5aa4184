"""Collections of Milvus, or of a file of Milvus Lite."""
