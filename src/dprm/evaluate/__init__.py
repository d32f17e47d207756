"""How results are judged: paired intervals, pass@K, order audits, result cards."""
