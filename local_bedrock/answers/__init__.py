"""Generate answers from passages, by quoting them or with a model on an OpenAI-compatible server."""
