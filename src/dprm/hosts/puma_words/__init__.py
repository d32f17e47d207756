"""Word problems with answers written out step by step."""
