"""How well searches find what people judged to be relevant: ``ragstack eval`` and ``ragstack tune``."""

from importlib.util import find_spec

from ragstack_common.core.errors import MissingPackageError

if find_spec("ir_measures") is None:
    # Before any import of a package of a smaller extra, whose name would be only a part of what is needed.
    raise MissingPackageError("The evaluation", "ir_measures", "evaluation")
