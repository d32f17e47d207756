"""The hosts of the paper, each a folder that holds only what is its own: data, reward, decoding, cells, recipe."""

from dprm.hosts.registry import ENTRIES, Entry, load

__all__ = ["ENTRIES", "Entry", "load"]
