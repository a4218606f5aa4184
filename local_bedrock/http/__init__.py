"""The wire protocol: requests, responses, limits of connections."""
