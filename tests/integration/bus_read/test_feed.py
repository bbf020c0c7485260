"""Many followers of one stream: each gets everything once and in order, over one consumer."""
