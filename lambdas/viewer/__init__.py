"""Documents and ingestion jobs over HTTP."""
