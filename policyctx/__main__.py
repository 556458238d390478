"""Run the command line as `python -m policyctx`."""

from policyctx.cli import main

if __name__ == "__main__":
    main()
