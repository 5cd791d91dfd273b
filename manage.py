#!/usr/bin/env python
"""The same as the installed command `pointsman`."""

import sys

from controlplane.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
