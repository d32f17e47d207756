"""How a command fails: one clear line on standard error, exit code 2, nothing overwritten."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def clear_errors(command: str) -> Iterator[None]:
    """Turn what a person can mend (bad values, missing files) into a message; a bug shows itself."""
    try:
        yield
    except (ValueError, OSError) as error:
        typer.echo(f"dprm {command}: {error}", err=True)
        raise typer.Exit(2) from None
