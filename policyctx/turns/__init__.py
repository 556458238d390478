"""What a turn is made of: the list known so far, what is remembered, who does it, the result."""
