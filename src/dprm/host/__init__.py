"""What a host is: problems, a model, a judge, and its own decisions about decoding."""
