"""Read documents and their metadata from S3 or a request, and convert them to text."""
