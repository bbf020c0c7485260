"""OpenCode, and what is made of it, through its HTTP server."""
