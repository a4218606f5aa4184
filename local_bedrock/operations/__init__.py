"""The operations of the services, one module for each group."""
