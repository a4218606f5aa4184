"""Questions over HTTP to ranked results."""
