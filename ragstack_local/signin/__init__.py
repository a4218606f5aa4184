"""Signing in as a person: the protocol of OpenID Connect, the browser, and the tokens that are kept."""
