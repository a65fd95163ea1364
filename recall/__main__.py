"""`python -m recall` is the command line."""

from recall.apps.cli import main

if __name__ == "__main__":
    main()
