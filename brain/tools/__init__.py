"""The MCP surface: one tool, one service function."""
