"""Background work: documents are prepared and stored, ingestion jobs run, and statuses change."""
