"""How well searches find what people judged to be relevant: ``ragstack eval`` and ``ragstack tune``."""

from importlib.util import find_spec

from ragstack_common.core.errors import needs_extra

with needs_extra("evaluation", "The evaluation"):
    # Before any import of a package of a smaller extra, whose name would be only a part of what is needed.
    if find_spec("ir_measures") is None:
        raise ModuleNotFoundError(name="ir_measures")
