"""Protein domains: sequence and structure as two streams, in a sampler that takes tokens back. Ordered: both."""
