"""The local Bedrock's HTTP side: the ASGI application, connections that break on purpose, administration, metrics."""
