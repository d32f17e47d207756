"""Countdown: reach a target from given numbers by whole-number steps. What is ordered: response positions."""
