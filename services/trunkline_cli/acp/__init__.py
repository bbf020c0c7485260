"""`trunkline acp`: `trunkline_acp` over the standard streams."""
