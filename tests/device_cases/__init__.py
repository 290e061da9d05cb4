"""What every device name must give: calls, inputs and references, by section of the table of device names."""
