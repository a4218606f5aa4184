"""What several benchmarks share. Importing it lets them import the repository's tests and stacks, too."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
