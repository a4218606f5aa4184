"""Pages and texts of documents over HTTP, with quoted words marked."""
