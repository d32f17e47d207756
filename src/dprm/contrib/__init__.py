"""Thin adapters to other people's models and engines. No file of theirs is copied or overwritten."""
