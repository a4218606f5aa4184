"""What the routes do, without HTTP: searches, answers, documents, access, jobs, failures and judgments.

A service is built from settings and called with a caller and a request model. Start with ``search`` or ``documents``.
Models that few containers use are built with their first use (``defer_build``): each takes half a millisecond of a cold
start.
"""
