"""The engine for Milvus and Milvus Lite."""
