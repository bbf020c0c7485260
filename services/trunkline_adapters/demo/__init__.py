"""A scripted agent for trying Trunkline out and for tests: it does what the words of a prompt say."""
