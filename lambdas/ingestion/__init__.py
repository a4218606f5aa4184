"""S3 events to submitted documents."""
