#!/bin/sh
# The Lambda Web Adapter starts this instead of Lambda's own runtime, which would put the layers on the path.
PYTHONPATH=/opt/python exec python -m uvicorn handler:app --port "$AWS_LWA_PORT" --ws none --no-access-log --log-level warning
