"""The concepts of the language, each defined once, as data: see the modules."""
