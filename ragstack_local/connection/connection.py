"""The project's folder, and where a stack is: the running local one, or one deployed to AWS."""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from local_bedrock.options import LOCAL
from ragstack_common.core.addresses import is_here
from ragstack_common.core.metrics import STACKS
from ragstack_common.settings.ingestion import FUNCTION_SETTINGS, OFF, Recognition
from ragstack_common.settings.names import OTHER_STORE
from ragstack_local.connection import running
from ragstack_local.connection.environment import DATA_VARIABLE
from ragstack_local.errors import StackError

if TYPE_CHECKING:
    import boto3
    from botocore.config import Config

LOCAL_REGION: Final = "us-east-1"
DEFAULT_PREFIX: Final = "RagStack"
TRANSFER_THREADS: Final = 16

LOCAL_CREDENTIALS: Final = dict.fromkeys(("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), "local")
LOCAL_REGIONS: Final = dict.fromkeys(("AWS_REGION", "AWS_DEFAULT_REGION"), LOCAL_REGION)

NAMES: Final = ("API", "ANSWERS", "BUCKET", "KNOWLEDGE_BASE_ID", "DATA_SOURCE_ID", "PEOPLE_API", "OIDC_ISSUER")
"""Variables of `ragstack env` that AWS SDKs do not read."""


@dataclass(frozen=True)
class Project:
    """A checkout of the project, or the installed package without one."""

    root: Path
    data: Path

    @classmethod
    def find(cls) -> "Project":
        """Find the checkout that this package is installed from.

        Data goes to the folder in the variable RAGSTACK_DATA; by default to .ragstack in the checkout, or without a
        checkout in the current folder.
        """
        root = Path(__file__).resolve().parents[2]
        default = root / ".ragstack" if (root / "cdk.json").is_file() else Path(".ragstack")
        return cls(root, Path(os.environ.get(DATA_VARIABLE) or default).absolute())

    def require_checkout(self) -> None:
        """Check that the local stack can be started from here.

        Raises:
            StackError: The package was installed without its checkout.
        """
        if not (self.root / "cdk.json").is_file():
            raise StackError(
                "`ragstack up` and `ragstack demo` deploy the CDK app of the project's repository, which is not"
                " installed with the package: clone the repository and run `make demo` or `make up` there."
                " `ragstack bedrock` runs the local Bedrock without it."
            )

    @property
    def running(self) -> Path:
        """Records where the running stack is."""
        return self.data / "running.json"

    @property
    def sample_access(self) -> Path:
        """The access file of the sample documents."""
        return (self.root / "samples" / "access.json").absolute()

    @property
    def ministack(self) -> Path:
        """MiniStack, in a virtual environment of its own."""
        return self._installed(self.root / ".ministack" / "bin" / "ministack")

    @property
    def cdk(self) -> Path:
        """The CDK command line."""
        return self._installed(self.root / "node_modules" / ".bin" / "cdk")

    @property
    def tools(self) -> Path:
        """The folder of this interpreter, where node is too."""
        return Path(sys.executable).parent

    def _installed(self, path: Path) -> Path:
        if not path.exists():
            raise StackError(f"{path.relative_to(self.root)} is missing: run `make setup`")
        return path


@dataclass(frozen=True)
class Connection:
    """A deployed stack."""

    api_url: str
    bucket: str
    knowledge_base_id: str
    data_source_id: str
    queue_url: str
    dead_letter_queue_url: str
    status_queue_url: str
    conversion_queue_url: str
    large_conversion_queue_url: str
    receipts_queue_url: str
    jobs_queue_url: str
    registry_table: str
    vector_store: str = OTHER_STORE
    recognition: Recognition = OFF
    aws_endpoint: str | None = None
    bedrock_endpoint: str | None = None
    answers_url: str | None = None  # where answers stream, if not at the API's URL
    console_url: str | None = None  # None if no console was deployed
    process_id: int | None = None
    data: str | None = None  # the data folder of a local stack
    people_url: str | None = None  # the API of people, if they can sign in; `api_url` is that of programs, if any
    oidc_issuer: str | None = None
    oidc_audience: str | None = None  # audiences with commas between them
    # The ids of the knowledge bases and data sources of tenants.
    tenants: Mapping[str, str] = field(default_factory=dict, hash=False)
    deployed_to: str | None = None  # the prefix, the Region and the account of a stack on AWS

    @property
    def data_sources(self) -> list[tuple[str, str]]:
        """The ids of knowledge base and data source: the shared ones, then those of tenants."""
        own = (ids.partition("/") for ids in self.tenants.values())
        return [(self.knowledge_base_id, self.data_source_id), *((first, second) for first, _, second in own)]

    @classmethod
    def from_outputs(cls, outputs: Mapping[str, Mapping[str, str]], prefix: str, **local: Any) -> "Connection":
        """Read the outputs of `cdk deploy`, by stack.

        Raises:
            StackError: An output is missing.
        """
        merged = {name: value for part in STACKS for name, value in outputs.get(prefix + part, {}).items()}
        try:
            people_url = merged.get("PeopleApiUrl", merged["ApiUrl"])
            return cls(
                # ApiUrl is that of the first kind of caller.
                api_url=merged.get("ProgramsApiUrl", merged["ApiUrl"]).rstrip("/"),
                bucket=merged["DocumentsBucketName"],
                knowledge_base_id=merged["KnowledgeBaseId"],
                data_source_id=merged["DataSourceId"],
                queue_url=merged["IngestionQueueUrl"],
                dead_letter_queue_url=merged["DeadLetterQueueUrl"],
                status_queue_url=merged["StatusQueueUrl"],
                conversion_queue_url=merged["ConversionQueueUrl"],
                large_conversion_queue_url=merged["LargeConversionQueueUrl"],
                receipts_queue_url=merged["ReceiptsQueueUrl"],
                jobs_queue_url=merged["JobsQueueUrl"],
                registry_table=merged["RegistryTableName"],
                vector_store=merged.get("VectorStore", OTHER_STORE),
                recognition=cast("Recognition", merged.get("TextRecognition", OFF)),
                people_url=people_url.rstrip("/") if "OidcIssuer" in merged else None,
                oidc_issuer=merged.get("OidcIssuer"),
                oidc_audience=merged.get("OidcAudience"),
                tenants=json.loads(merged.get("TenantKnowledgeBases", "{}")),
                **{"console_url": merged.get("ConsoleUrl"), **local},
            )
        except KeyError as error:
            raise StackError(f"The stacks {prefix}* have no output {error}: deploy them again") from None

    @classmethod
    def from_running_stack(cls, file: Path) -> "Connection":
        """Read where the running local stack is.

        Raises:
            StackError: No stack is running.
        """
        fields = running.read(file)
        if fields is None:
            raise StackError(
                "No local stack is running: start one with `ragstack up`, or use a deployed one with --aws or, where"
                " the command takes it, --api-url"
            )
        try:
            found = cls(**fields)
        except TypeError:
            raise StackError("The local stack is still starting: try again in a moment") from None
        # The folder may be from elsewhere, and commands send tokens and documents to these addresses.
        addresses = (found.api_url, found.people_url, found.answers_url, found.aws_endpoint, found.bedrock_endpoint)
        if elsewhere := [url for url in (*addresses, found.oidc_issuer) if url is not None and not is_here(url)]:
            raise StackError(f"{file} names {elsewhere[0]}, and no local stack is there: delete the file")
        return found

    @classmethod
    def from_deployed_stack(cls, prefix: str = DEFAULT_PREFIX) -> "Connection":
        """Ask CloudFormation, in the account and region of the AWS settings, where the deployed stack is.

        Raises:
            StackError: A stack is missing.
            ClientError: CloudFormation refused.
        """
        import boto3  # noqa: PLC0415 - slow to import; a command that needs only the API does without

        cloudformation = boto3.client("cloudformation")
        outputs = {}
        for part in STACKS:
            try:
                (stack,) = cloudformation.describe_stacks(StackName=prefix + part)["Stacks"]
            except cloudformation.exceptions.ClientError as error:
                if "does not exist" in str(error):
                    raise StackError(
                        f"There is no stack {prefix}{part} in this account and region: deploy it"
                    ) from None
                raise
            outputs[prefix + part] = {o["OutputKey"]: o["OutputValue"] for o in stack.get("Outputs", [])}
        region, account = stack["StackId"].split(":")[3:5]
        where = f"{prefix} on AWS, Region {region}, account {account}"
        endpoint = cloudformation.meta.endpoint_url
        if not str(urlsplit(endpoint).hostname).endswith((".amazonaws.com", ".amazonaws.com.cn", ".api.aws")):
            where += f", at {endpoint}"
        return cls.from_outputs(outputs, prefix, deployed_to=where)

    @property
    def is_local(self) -> bool:
        """Whether the stack runs on this machine."""
        return self.aws_endpoint is not None

    @property
    def described(self) -> str:
        """Which stack this is, in one line."""
        return f"Stack: {self.deployed_to or f'local, {self.aws_endpoint}'}"

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables that AWS SDKs and the examples in the documentation read."""
        answers_url = self.answers_url or self.api_url
        ids = (self.bucket, self.knowledge_base_id, self.data_source_id)
        values = (self.api_url, answers_url, *ids, self.people_url, self.oidc_issuer)
        found = {name: value for name, value in zip(NAMES, values, strict=True) if value is not None}
        if self.is_local:
            found |= {**LOCAL_CREDENTIALS, **LOCAL_REGIONS, "AWS_ENDPOINT_URL": str(self.aws_endpoint)}
            for service in ("BEDROCK_AGENT", "BEDROCK_AGENT_RUNTIME", "BEDROCK_RUNTIME"):
                found[f"AWS_ENDPOINT_URL_{service}"] = str(self.bedrock_endpoint)
        return found

    def embedding(self) -> dict[str, Any] | None:
        """Return the local Bedrock's embedding, its dimension and the progress of embedding again; None on AWS."""
        if self.bedrock_endpoint is None:
            return None
        import urllib3  # noqa: PLC0415 - as above

        try:
            answer = urllib3.request("GET", f"{self.bedrock_endpoint}/health", timeout=5.0, retries=False)
        except urllib3.exceptions.HTTPError:
            return None
        found: dict[str, Any] = answer.json()
        return {name: found[name] for name in ("embedding", "dimension", "reembedding")}

    def client(self, service: str, region: str | None = None) -> Any:
        """Make an unmodified boto3 client for this stack; on AWS, *region* can be another Region."""
        import boto3  # noqa: PLC0415 - as above
        from botocore.config import Config  # noqa: PLC0415

        config = Config(max_pool_connections=TRANSFER_THREADS, retries={"mode": "standard"})
        if not self.is_local:
            return boto3.client(service, region, config=config)  # type: ignore[call-overload]
        endpoint = self.bedrock_endpoint if service.startswith("bedrock") else self.aws_endpoint
        return local_client(service, str(endpoint), config)


def local_client(service: str, endpoint: str, config: "Config") -> Any:
    """Make a client with the local stack's credentials, without the user's AWS settings and without a proxy."""
    from botocore.config import Config  # noqa: PLC0415 - as above

    for name in ("AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        os.environ.pop(name, None)
    return local_session().client(service, endpoint_url=endpoint, config=config.merge(Config(proxies={})))  # type: ignore[call-overload]


@cache
def local_session() -> "boto3.Session":
    """Return the session of the local stack. Cached, because each session reads the service models again."""
    import boto3  # noqa: PLC0415 - as above

    return boto3.Session(aws_access_key_id="local", aws_secret_access_key="local", region_name=LOCAL_REGION)  # noqa: S106


def local_environment(aws_endpoint: str, **more: str) -> dict[str, str]:
    """Return the environment of a local process, with all calls to the local stack.

    It has neither the user's AWS settings nor their settings of functions: a function has those of its deployment.
    """
    settings = {variable for model in FUNCTION_SETTINGS for variable in model.variables()}
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith("AWS_") and name not in settings
    }
    without_proxy = ",".join(filter(None, (os.environ.get("NO_PROXY") or os.environ.get("no_proxy"), LOCAL)))
    return inherited | {
        "NO_PROXY": without_proxy,
        "no_proxy": without_proxy,
        **LOCAL_CREDENTIALS,
        **LOCAL_REGIONS,
        "AWS_ENDPOINT_URL": aws_endpoint,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        **more,
    }
