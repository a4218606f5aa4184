"""Questions over HTTP to answers with sources."""
