"""From result cards to what people read."""
