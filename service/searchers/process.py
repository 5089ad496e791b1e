"""The beginning of a search process: `python -m service.searchers.process FD`, where FD is a socket to the server."""

from __future__ import annotations

import ctypes
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """See to the end of the process, and then begin."""
    # Whoever ends all processes of a server may reach this one first, which is still needed until the server has ended.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if sys.platform == "linux":  # end with the thread of the server that has started this, even while this is stopped
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    from service.searchers.listening import listen

    listen(int(sys.argv[1]))


if __name__ == "__main__":
    main()
