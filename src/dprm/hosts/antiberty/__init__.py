"""Antibody heavy chains, by AntiBERTy: a pretrained model that nobody here trained. What is ordered: residues."""
