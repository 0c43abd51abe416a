"""`python -m nilometer`."""

from nilometer.cli import main

if __name__ == "__main__":
    main()
