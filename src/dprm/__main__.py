"""The command `dprm`, also as `python -m dprm`; one line where what it needs is not installed."""

import sys

# What the extra `cli` installs.
_NEEDED = ("typer", "rich", "click")


def main() -> None:
    """Entry point of the console script."""
    try:
        import rich.console  # noqa: F401 (for typer it is an extra too)

        from dprm.cli import app
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in _NEEDED:
            raise
        sys.exit(f'dprm: there is no {missing} here: install the command with `pip install "dprm[cli]"`')
    app()


if __name__ == "__main__":
    main()
