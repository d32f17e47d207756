"""Regulatory DNA of 200 bases, designed to be open in liver cells (HepG2). What is ordered: bases."""
