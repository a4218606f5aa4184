"""The HTTP API: request and response models, routes and error statuses of the functions behind API Gateway."""
