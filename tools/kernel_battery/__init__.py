"""Run kernels of public projects on every target: where they come from, what is given to them, what must come out."""
