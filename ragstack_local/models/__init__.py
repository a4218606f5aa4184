"""Known embedding models, fetched and converted into the user's cache."""
