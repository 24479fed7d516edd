"""The only callers of SQL: one module a table or concern."""
