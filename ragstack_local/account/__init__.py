"""What an AWS account must allow: quotas, and access to models."""
