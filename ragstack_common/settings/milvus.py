"""The settings of Milvus."""

from typing import Self

from pydantic import Field, model_validator

from ragstack_common.settings.base import SecretArn, Settings


class MilvusSettings(Settings):
    """The server of the Milvus collections whose configurations name none, and its login."""

    milvus_address: str | None = Field(
        None,
        repr=False,  # a URL may have a password
        description="Milvus: `host:port`, a URL, or a Milvus Lite file (`.db`); for collections without a `uri`",
    )
    milvus_database: str | None = Field(None, description="a database of Milvus; by default the server's own")
    milvus_username: str | None = Field(None, description="a user of Milvus")
    milvus_password: str | None = Field(
        None, repr=False, description="the password; alone, an API key. On AWS, use a secret"
    )
    milvus_secret: SecretArn | None = Field(
        None,
        description="a secret with `username` and `password` as JSON, or an API key",
    )

    @model_validator(mode="after")
    def _has_one_login(self) -> Self:
        if self.milvus_secret and (self.milvus_username or self.milvus_password):
            raise ValueError("MILVUS_SECRET replaces MILVUS_USERNAME and MILVUS_PASSWORD: leave these out")
        return self
