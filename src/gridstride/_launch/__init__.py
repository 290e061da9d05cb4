"""Launch configurations: from what users write to checked numbers."""
