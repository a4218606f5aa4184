"""Files, the bucket and their documents."""
