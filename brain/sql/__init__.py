"""Named queries, a file a table or concern."""
