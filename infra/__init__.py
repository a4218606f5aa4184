"""The stacks of RAGStack and the resources they are composed of."""
