"""Errors as the API's JSON."""

from pydantic import BaseModel, Field


class Problem(BaseModel):
    """An invalid member of the body."""

    member: str
    problem: str


class ErrorDetail(BaseModel):
    """What went wrong."""

    code: str = Field(description="The error code, such as InvalidFilter")
    message: str = Field(description="One line that says what is wrong")
    details: list[Problem]
    requestId: str = Field(description="The id of the request in the log")  # noqa: N815 - the interface's name


class Error(BaseModel):
    """The answer to a request that failed."""

    error: ErrorDetail
