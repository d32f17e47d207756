"""Examples that Hypothesis draws: the same on every run here, others with `pytest --hypothesis-profile search`."""

from hypothesis import settings

settings.register_profile("same", derandomize=True, max_examples=60, deadline=None)
settings.register_profile("search", max_examples=2000, deadline=None)
settings.load_profile("same")
