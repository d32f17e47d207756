"""Molecules in bracket-SAFE: what is ordered are the positions of the fragment text."""
