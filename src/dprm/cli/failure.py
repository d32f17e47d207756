"""How a command fails: one clear line on standard error, exit code 2, nothing overwritten; 130 where it was stopped."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from dprm.cli.terminal import say


@contextmanager
def clear_errors(command: str) -> Iterator[None]:
    """Turn what a person can mend (bad values, missing files, a full disk) into a message; a bug shows itself.

    SIGTERM, as schedulers of clusters send it, is a Ctrl-C.
    """
    ours = threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGTERM, signal.default_int_handler) if ours else None
    try:
        yield
    except KeyboardInterrupt:
        say(f"dprm {command}: stopped; what is done is kept, and the same command goes on from there", err=True)
        raise typer.Exit(130) from None
    except (ValueError, OSError) as error:
        say(f"dprm {command}: {error}", err=True)
        raise typer.Exit(2) from None
    finally:
        if ours:
            signal.signal(signal.SIGTERM, before or signal.SIG_DFL)
