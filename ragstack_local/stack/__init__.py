"""The local stack: MiniStack, the local Bedrock and the project's own CDK app, in one process tree."""

from ragstack_local.stack.errors import StackError

__all__ = ["StackError"]
