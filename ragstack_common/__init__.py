"""What RAGStack's functions, command line and programs share."""

from typing import Final

DISTRIBUTION: Final = "ragstack-kb"
"""Name on the package index, where ``ragstack`` is another project. Messages that say what to install use it."""

__version__ = "0.1.0"
