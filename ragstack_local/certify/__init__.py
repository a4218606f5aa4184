"""What the project believes of AWS, compared with a live account or with the local stack: ``ragstack certify``."""
