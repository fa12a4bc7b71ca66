"""Windows: the registry of streams and queries, and the author of the plans that everyone reads."""
