"""A store at a URL: contents and journal as objects, through the package obstore."""
