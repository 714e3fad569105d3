"""``python -m dynaboltz``."""

import sys

from dynaboltz.cli import main

if __name__ == "__main__":
    sys.exit(main())
