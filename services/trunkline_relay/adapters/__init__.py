"""How a relay is reached: one adapter for each way, all by the protocol in `base`."""
