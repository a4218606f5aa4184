"""The HTTP interface: routes, bodies, errors, streams, MCP and the OpenAPI document; ``services`` does the work.

Start with ``route_table``. ``powertools`` serves functions behind API Gateway, ``asgi`` streams.
"""
