"""Adapters to other people's engines and libraries: each is thin, and none is imported unless it is asked for."""
