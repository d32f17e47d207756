"""The shared transformer, the one training loop, mask laws, the streaming pool, and objectives."""
