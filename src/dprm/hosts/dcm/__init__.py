"""Single cells as binned counts: what is ordered are the genes of a cell."""
