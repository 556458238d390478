"""The files that content goes to, and how they are written so that nothing is ever lost."""
