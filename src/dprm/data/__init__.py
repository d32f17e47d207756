"""What problems and training sequences are made of: seeded draws, disjoint splits, stocks, text on canvases."""
