# PYTHON_ARGCOMPLETE_OK
"""The command line, as `python -m pybpe` and as the program `pybpe`."""

import sys


def main() -> int:
    """Runs the command line; returns the exit code. Ctrl-C is one line at any moment, while modules load too."""
    try:
        from . import cli

        return cli.main()
    except KeyboardInterrupt:
        print("pybpe: interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
