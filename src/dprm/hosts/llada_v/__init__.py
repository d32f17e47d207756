"""Questions about pictures in four answer slots, as in LLaDA-V."""
