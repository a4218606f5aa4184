"""The local stack: MiniStack, the local Bedrock and the project's own CDK app, in one process tree."""
