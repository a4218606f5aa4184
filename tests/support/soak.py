"""Whether this is the long run: `make soak` takes all of what a short run takes a part of."""

import os
from typing import Final

SOAK: Final = os.environ.get("RAGSTACK_SOAK") == "1"
