"""The small hosts, and what they share: one transformer, one training loop, one way to make splits."""
