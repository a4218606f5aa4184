"""Collections of Chroma built from files."""
