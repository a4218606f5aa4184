"""Answers written from passages: quoted from them, or by a model on an OpenAI-compatible server."""
