"""Run random sessions from a seed on; print a line for each that fails, and one about all."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from tests.fuzz.histories import Report, run_session

_SHOWN_AFTER = 1_000
"""The number of sessions after which a line says what came of them so far."""


def main() -> int:
    """Return 1 if there was a failure.

    Failures are an invalid list, an error, lost content, and a difference after a restart.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first session")
    parser.add_argument("--applies", type=int, default=100_000, help="calls of apply to make")
    parser.add_argument("--newest", action="store_true", help="only policies with the newest words")
    options = parser.parse_args()
    logging.getLogger("policyctx").setLevel(logging.ERROR)  # warnings are a part of the results
    report, seed, began = Report(), options.seed, time.perf_counter()
    while report.applies < options.applies:
        before = +report.failures
        try:
            run_session(seed, report, newest=options.newest)
        except Exception as error:
            error.add_note(f"the session has seed {seed}; {report}")
            raise
        if new := report.failures - before:
            print(f"seed {seed}: {', '.join(sorted(new))}", flush=True)  # noqa: T201
        seed += 1
        if report.sessions % _SHOWN_AFTER == 0:
            print(report, flush=True)  # noqa: T201
    rate = report.applies / (time.perf_counter() - began)
    print(f"{report}; {rate:,.0f} applies/s; go on with --seed {seed}")  # noqa: T201
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
