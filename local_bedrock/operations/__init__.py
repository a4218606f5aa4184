"""What each operation does, one module for each group of resources."""
