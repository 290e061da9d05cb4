// Marks a runtime that the package's build compiled with the digest of its sources (prebuilt.py).
extern "C" __attribute__((visibility("default"))) const char gridstride_runtime_sources[] = GRIDSTRIDE_RUNTIME_SOURCES;
