"""Checks of the services: Amazon Bedrock, S3 Vectors, and the account's quotas."""
