"""The HTTP surface: the MCP mount, authentication and health."""
