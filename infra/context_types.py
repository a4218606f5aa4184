"""Types of context values, which are texts."""

from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from ragstack_common.http.console import MAX_QUESTIONS, parse_questions
from ragstack_common.settings.access import NO_ACCESS_FILE
from ragstack_common.settings.base import Allowed

OFF: Final = "off"


def _existing_file(path: Path) -> Path:
    if not path.is_file():
        raise ValueError("there is no such file")
    return path.resolve()


Switch = Annotated[bool, Allowed("on or off")]

BedrockId = Annotated[str, Field(pattern=r"^[0-9a-zA-Z]{10}$"), Allowed("ten letters or digits")]
"""Source: bedrock-agent, shape Id."""

Url = Annotated[
    str,
    Field(pattern=r"^https?://[^/\s]+/?$"),
    AfterValidator(lambda url: url.rstrip("/")),
    Allowed("http://HOST:PORT"),
]

Prefix = Annotated[
    str, Field(pattern=r"^[A-Za-z][A-Za-z0-9-]{0,39}$"), Allowed("a letter, then at most 39 letters, digits or hyphens")
]

Schedule = Annotated[
    str,
    Field(
        pattern=rf"^(cron\((\S+ ){{5}}\S+\)|rate\((1 (minute|hour|day)|([2-9]|[1-9]\d+) (minutes|hours|days))\)|{OFF})$"
    ),
    Allowed(f"cron(MINUTE HOUR DAY MONTH WEEKDAY YEAR), rate(NUMBER UNIT) or {OFF}"),
]
"""Source: EventBridge user guide, schedule expressions."""


def _separated(value: Any) -> Any:
    return tuple(part.strip() for part in value.split(",")) if isinstance(value, str) else value


SubnetIds = Annotated[
    tuple[Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")], ...],
    BeforeValidator(_separated),
    Allowed("ids of subnets, such as subnet-0123456789abcdef0, separated by commas"),
]
SecurityGroupIds = Annotated[
    tuple[Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$")], ...],
    BeforeValidator(_separated),
    Allowed("ids of security groups, such as sg-0123456789abcdef0, separated by commas"),
]

AccessFile = Annotated[
    Path | Literal["none"],
    AfterValidator(lambda value: _existing_file(value) if isinstance(value, Path) else value),
    Allowed(f"the path of a .json file, or {NO_ACCESS_FILE}"),
]

SettingsFile = Annotated[Path, AfterValidator(_existing_file), Allowed("the path of a .json or .txt file")]

BucketName = Annotated[
    str,
    Field(pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$"),
    Allowed("the name of a bucket in the Region of the stacks"),
]
"""Source: S3 user guide, bucket naming rules."""

TableName = Annotated[
    str, Field(pattern=r"^[a-zA-Z0-9_.-]{3,255}$"), Allowed("the name of a table in the Region of the stacks")
]
"""Source: dynamodb, shape TableName."""

KeyArn = Annotated[
    str, Field(pattern=r"^arn:aws[-a-z0-9]*:kms:[a-z0-9-]+:\d{12}:key/[a-zA-Z0-9-]+$"), Allowed("the ARN of a KMS key")
]
"""Source: s3vectors, shape KmsKeyArn, which takes no alias."""

_RETENTIONS: Final = frozenset(
    {*(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)}
)


def _retention(days: int) -> int:
    if days not in _RETENTIONS:
        raise ValueError("CloudWatch does not accept this number of days")
    return days


RetentionDays = Annotated[
    int, AfterValidator(_retention), Allowed("a number of days that CloudWatch accepts, such as 7, 30, 90, 365 or 3653")
]
"""Source: logs, PutRetentionPolicy."""

VectorIndexArn = Annotated[
    str,
    Field(
        pattern=r"^arn:aws[-a-z0-9]*:s3vectors:[a-z0-9-]+:\d{12}:bucket/[a-z0-9][a-z0-9-.]{1,61}[a-z0-9]"
        r"/index/[a-z0-9][a-z0-9-.]{1,61}[a-z0-9]$"
    ),
    Allowed("the ARN of an index of S3 Vectors"),
]
"""Source: s3vectors, shape IndexArn."""

TextLanguage = Literal["en", "fr", "es", "pt", "it", "de", "nl", "zh", "ja", "ko"]
"""Source: s3vectors, shape LanguageCode."""

LayerArn = Annotated[
    str, Field(pattern=r"^arn:[^:]+:lambda:[^:]+:\d{12}:layer:[^:]+:\d+$"), Allowed("the ARN of a layer's version")
]
"""Source: lambda, shape LayerVersionArn."""

Domain = Annotated[
    str,
    Field(pattern=r"^([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$"),
    Allowed("a domain in lower case, such as docs.example.com"),
]

Questions = Annotated[
    tuple[Annotated[str, Field(max_length=200)], ...],
    Field(max_length=MAX_QUESTIONS),
    BeforeValidator(lambda value: parse_questions(value) if isinstance(value, str) else value),
    Allowed(f"up to {MAX_QUESTIONS} questions, separated by semicolons"),
]

CertificateArn = Annotated[
    str,
    Field(pattern=r"^arn:aws[a-z-]*:acm:[a-z0-9-]+:\d{12}:certificate/[0-9a-f-]+$"),
    Allowed("the ARN of a certificate of AWS Certificate Manager"),
]
"""Source: acm, shape Arn."""

TopicArn = Annotated[
    str,
    Field(pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}$"),
    Allowed("the ARN of an SNS topic that is not a FIFO topic"),
]
"""Source: SNS API reference, CreateTopic."""

EmailAddress = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$"),
    Allowed("an e-mail address"),
]
"""Source: HTML, valid e-mail address, with a dot in the domain."""

UserPoolId = Annotated[
    str,
    Field(pattern=r"^[a-z0-9-]+_[0-9a-zA-Z]+$", max_length=55),
    Allowed("the id of a user pool, such as eu-west-1_aBcDeFgHi"),
]
"""Source: cognito-idp, shape UserPoolIdType."""

WebAcls = Annotated[
    tuple[
        Annotated[
            str,
            Field(
                pattern=r"^arn:aws[a-z-]*:wafv2:[a-z0-9-]+:\d{12}:(global|regional)/webacl/[\w-]{1,128}/[\w-]{1,36}$"
            ),
        ],
        ...,
    ],
    BeforeValidator(_separated),
    Allowed("ARNs of web ACLs of AWS WAF, separated by commas"),
]
"""Source: wafv2, shape ResourceArn."""

ResourceTags = Annotated[
    tuple[
        Annotated[str, Field(pattern=r"^[A-Za-z0-9 _./+@-]{1,128}=[A-Za-z0-9 _.:/+@=-]{0,256}$")],
        ...,
    ],
    BeforeValidator(_separated),
    Allowed("NAME=VALUE pairs separated by commas"),
]
"""Source: tag naming limits of AWS; without colons in names, so that none begins with aws:."""

LayerFile = Annotated[Path, AfterValidator(_existing_file), Allowed("the path of a zip file")]
