"""The JSON of the tools over HTTP."""

from typing import Any, Literal

from pydantic import BaseModel, Field


class Tool(BaseModel):
    """A tool with the JSON schemas of its input and output."""

    name: str
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any]


class ToolList(BaseModel):
    """The tools."""

    tools: list[Tool]


class ToolInput(BaseModel, extra="forbid"):
    """The input of a tool."""

    input: dict[str, Any] = Field(description="Valid under the tool's input_schema in GET /tools")


class ToolStats(BaseModel):
    """How long a tool took."""

    execution_time: str = Field(examples=["1.2s"])


class ToolSuccess(BaseModel):
    """The output of a tool."""

    success: Literal[True]
    output: dict[str, Any] = Field(description="Valid under the tool's output_schema in GET /tools")
    stats: ToolStats


class ToolFailure(BaseModel):
    """The answer of a tool that failed."""

    success: Literal[False]
    error: str
