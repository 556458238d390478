"""What is measured, against whom, and how to run it: see README.md."""
