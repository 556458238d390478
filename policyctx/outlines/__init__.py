"""What a person would keep of a text at a glance, with the lines to read on."""
