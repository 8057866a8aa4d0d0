"""A training command without a GPU: what it starts, what stands in for the world, which batches it meets."""
