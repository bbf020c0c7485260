"""The agent side of the Agent Client Protocol: an editor drives sessions of the gateway as if they were an agent."""
