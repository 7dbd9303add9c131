"""Reading run directories into a store."""
