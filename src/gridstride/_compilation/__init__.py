"""From a program to loaded functions: the cache key, the two-level cache, the compilation."""
