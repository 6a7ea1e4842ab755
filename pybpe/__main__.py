# PYTHON_ARGCOMPLETE_OK
"""The command line, as `python -m pybpe` and as the program `pybpe`."""

import os
import signal
import sys
from contextlib import suppress

from .support.platform import ENDING_SIGNALS


class _Ended(KeyboardInterrupt):
    """SIGTERM or SIGHUP as an exception, so that the program removes its temporary files, as it does after Ctrl-C."""

    number: int


def _end(number: int, _: object) -> None:
    signal.signal(number, signal.SIG_DFL)  # the next signal ends the process at once
    ended = _Ended()
    ended.number = number
    raise ended


def _tell(interrupt: KeyboardInterrupt, by: str) -> None:
    """Prints one line: how the program was ended, and how to go on."""
    with suppress(OSError):  # its terminal is closed
        print(f"pybpe: {by}{''.join(f'; {more}' for more in interrupt.args)}", file=sys.stderr)


def main() -> int:
    """Runs the command line and returns the exit code. Ctrl-C prints one line at any time, even while modules load.
    SIGTERM and SIGHUP end the process as if they were not caught, but only after it has cleaned up."""
    for number in ENDING_SIGNALS:
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, _end)
    try:
        from . import cli

        return cli.main()
    except _Ended as ended:
        received = ended.number
        _tell(ended, f"ended by {signal.Signals(received).name}")
    except KeyboardInterrupt as interrupt:
        _tell(interrupt, "interrupted")
        return 130
    finally:
        # If Ctrl-C arrived while Python ran a string, as it does to make a NamedTuple, Python would end with SIGINT
        # instead of this exit code, although the exception was caught. Running another string prevents that.
        exec("")
    # The exception is gone now, and with it all objects that remove their temporary files when they are dropped.
    signal.signal(received, signal.SIG_DFL)
    os.kill(os.getpid(), received)
    return 128 + received


if __name__ == "__main__":
    sys.exit(main())
