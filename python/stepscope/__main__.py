"""The command line: ``stepscope …`` and ``python -m stepscope …``."""

import signal
import sys


def main() -> None:
    """Runs the command line with the program's arguments and ends with its exit code."""
    from . import _stepscope

    # Python's own handler would wait until the command returns.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_stepscope.cli(["stepscope", *sys.argv[1:]]))


if __name__ == "__main__":
    main()
