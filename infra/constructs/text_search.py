"""Word search in the indexes of S3 Vectors."""

from collections.abc import Sequence
from typing import Final

from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.constructs.inline_resource import MAX_FUNCTION_SECONDS, inline_resource
from ragstack_common.settings.names import TEXT_KEY

_CONFIGURE: Final = f"""\
import json
import time
import boto3
import cfnresponse
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import HTTPClientError
from botocore.httpsession import URLLib3Session

KEY = "{TEXT_KEY}"

def handler(event, context):
    asked, counts = event["ResourceProperties"], {{}}
    wanted = event["RequestType"] != "Delete"
    for index in asked["Indexes"]:
        try:
            state = configure(index, wanted, asked.get("Language"), context)
        except Exception as error:
            state = f"OFF: {{error}}"
        counts[state] = counts.get(state, 0) + 1
    outcome = "; ".join(f"{{state}} ({{count}})" for state, count in counts.items())[:1000]
    cfnresponse.send(event, context, cfnresponse.SUCCESS, {{"State": outcome}}, "text-search")

def configure(index, wanted, language, context):
    found, current = look(index, context)
    if wanted and found.get("indexMode") == "CLASSIC":
        return "OFF: the index mode is CLASSIC, see docs/CONFIGURATION.md"
    if current and not (wanted and current.get("language") == language):
        change(index, "delete", {{"metadataKey": KEY}}, context)
        current = None
    if wanted and not current:
        change(index, "add", {{"metadataKey": KEY, **({{"language": language}} if language else {{}})}}, context)
        _, current = look(index, context)
    return (current or {{}}).get("status", "BUILDING" if wanted else "OFF")

def look(index, context):
    found = call("GetIndex", {{"indexArn": index}}, context)["index"]
    texts = found.get("metadataConfiguration", {{}}).get("textSearchConfigurations", [])
    return found, next((each for each in texts if each["metadataKey"] == KEY), None)

def change(index, kind, text, context):
    call("UpdateMetadataConfiguration", {{"indexArn": index, kind: {{"textSearchConfigurations": [text]}}}}, context)

def call(operation, body, context):
    session = boto3.session.Session()
    client = session.client("s3vectors")
    for attempt in range(6):
        if context.get_remaining_time_in_millis() < 60_000:
            raise TimeoutError("there was no time left")
        url = f"{{client.meta.endpoint_url}}/{{operation}}"
        request = AWSRequest("POST", url, {{"Content-Type": "application/json"}}, json.dumps(body))
        SigV4Auth(session.get_credentials(), "s3vectors", client.meta.region_name).add_auth(request)
        try:
            answer = URLLib3Session(timeout=10).send(request.prepare())
        except HTTPClientError as error:
            status, reason = 503, error
        else:
            if answer.status_code == 200:
                return json.loads(answer.content or "{{}}")
            status, reason = answer.status_code, f"{{answer.headers.get('x-amzn-errortype')}}: {{answer.text}}"
        if status not in (403, 408, 409, 429) and status < 500:
            break
        time.sleep(2 ** attempt)
    raise RuntimeError(f"{{operation}}: {{reason}}")
"""
"""The SDK of Lambda's runtime may lack the operations and members, so the requests are only signed by it. A language is
changed by removing the configuration and adding another one. The function always succeeds: searches then stay without
words. IAM may not know its rights for a while, so a denied request is repeated."""


class TextSearch(Construct):
    """Lets S3 Vectors search the words of the chunks in these indexes.

    Args:
        indexes: The ARNs of the indexes.
        resource: What a policy names for all of them.
        language: The language of the documents; None for the standard analyzer.

    Attributes:
        state: ACTIVE, BUILDING, or OFF with the reason, each with the number of indexes.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, indexes: Sequence[str], resource: str, language: str | None
    ) -> None:
        super().__init__(scope, construct_id)
        configured, role = inline_resource(
            self,
            "Configured",
            code=_CONFIGURE,
            description="Configures word search in vector indexes",
            properties={"Indexes": [*indexes], **({"Language": language} if language else {})},
            timeout_seconds=MAX_FUNCTION_SECONDS,
            type_name="TextSearch",
        )
        permitted = iam.Grant.add_to_principal(
            actions=["s3vectors:GetIndex", "s3vectors:UpdateMetadataConfiguration"],
            grantee=role,
            resource_arns=[resource],
        )
        configured.node.add_dependency(permitted)
        self.state = configured.get_att_string("State")
