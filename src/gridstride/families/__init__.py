"""Kernel families: what users say."""
