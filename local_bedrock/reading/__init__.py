"""Documents and their metadata read: from S3 or a request, by format, into text."""
