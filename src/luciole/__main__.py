"""`python -m luciole` is `luciole`."""

from luciole.cli import main

if __name__ == "__main__":
    main()
