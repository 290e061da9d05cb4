"""State and objects of the runtime, written once over any target: devices, streams, events, memory."""
