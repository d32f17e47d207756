"""Sudoku: fill the blanks of a grid. What is ordered: the blanks, in training and in decoding."""
