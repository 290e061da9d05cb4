"""Arguments: where they live, and how they become a kernel's parameters."""
