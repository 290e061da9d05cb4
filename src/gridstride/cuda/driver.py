"""The names of ``cuda.bindings.driver``, which is imported at first use."""

from gridstride.cuda.forwarding import forwarder

__getattr__, __dir__ = forwarder("driver")
