"""Collections of Chroma, for the engine, the knowledge base and whoever builds them. Needs the extra ``chroma``."""
