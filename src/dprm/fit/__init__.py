"""How values are learned."""

from dprm.fit.onpolicy import OnPolicy

__all__ = ["OnPolicy"]
