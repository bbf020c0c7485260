"""pytest plugin of Trunkline."""
