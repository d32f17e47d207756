"""Judges of molecules that no order is rewarded by: models of others, in an environment and a process of their own."""
