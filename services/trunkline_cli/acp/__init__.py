"""The Agent Client Protocol's agent side: an editor drives a session of the gateway as if it were an agent."""
