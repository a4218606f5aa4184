"""The first synchronisation of data sources, which direct ingestion into them may need."""

from collections.abc import Sequence
from typing import Final

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from infra.constructs.inline_resource import MAX_FUNCTION_SECONDS, MAX_WAIT_SECONDS, inline_resource
from infra.constructs.knowledge_base import KnowledgeBaseIds, grant_knowledge_bases

JOBS_AT_ONCE: Final = 4
"""Source: Bedrock's quotas, concurrent ingestion jobs of an account: 5. One is left to others."""

SECONDS_BETWEEN_STEPS: Final = 10
"""Source: Bedrock's quotas, StartIngestionJob requests a second: 0.1."""

LONGEST_WAIT_SECONDS: Final = MAX_WAIT_SECONDS - 300
"""Room for the answer before CloudFormation gives up."""

ACTIONS: Final = (
    "bedrock:GetIngestionJob",
    "bedrock:ListIngestionJobs",
    "bedrock:ListKnowledgeBaseDocuments",
    "bedrock:StartIngestionJob",
)

_SYNCHRONISE: Final = f"""\
import json
import time
import boto3
import cfnresponse

LATER = ("ConflictException", "InternalServerException", "ServiceQuotaExceededException", "ThrottlingException")

def handler(event, context):
    outcome = ""
    if event["RequestType"] != "Delete":
        waiting = list(event["ResourceProperties"]["Sources"])
        new = {{"until": time.time() + {LONGEST_WAIT_SECONDS}, "waiting": waiting, "jobs": {{}}, "ended": {{}}}}
        state = event.setdefault("State", new)
        agent = boto3.client("bedrock-agent")
        while (state["waiting"] or state["jobs"]) and time.time() < state["until"]:
            if context.get_remaining_time_in_millis() < 60_000:
                if goes_on(event, context):
                    return
                break
            step(agent, state)
            if state["waiting"] or state["jobs"]:
                time.sleep({SECONDS_BETWEEN_STEPS})
        outcome = report(state)
    cfnresponse.send(event, context, cfnresponse.SUCCESS, {{"State": outcome}}, "first-sync")

def goes_on(event, context):
    try:
        boto3.client("lambda").invoke(
            FunctionName=context.function_name, InvocationType="Event", Payload=json.dumps(event).encode()
        )
    except Exception as error:
        print(f"It cannot go on: {{error}}")
        return False
    return True

def step(agent, state):
    for source, job in list(state["jobs"].items()):
        ended = attempt(lambda: follow(agent, source, job), state)
        if ended:
            del state["jobs"][source]
            state["ended"][source] = ended
    while state["waiting"] and len(state["jobs"]) < {JOBS_AT_ONCE}:
        source = state["waiting"][0]
        ended = attempt(lambda: start(agent, source, state["jobs"]), state)
        if ended:
            state["ended"][source] = ended
        if ended or source in state["jobs"]:
            del state["waiting"][0]
        if ended != "COMPLETE":
            break

def start(agent, source, jobs):
    ids = named(source)
    complete = {{"attribute": "STATUS", "operator": "EQ", "values": ["COMPLETE"]}}
    if agent.list_ingestion_jobs(**ids, filters=[complete], maxResults=1)["ingestionJobSummaries"]:
        return "COMPLETE"
    if agent.list_knowledge_base_documents(**ids, maxResults=1)["documentDetails"]:
        return "COMPLETE"
    jobs[source] = agent.start_ingestion_job(**ids)["ingestionJob"]["ingestionJobId"]

def follow(agent, source, job):
    found = agent.get_ingestion_job(**named(source), ingestionJobId=job)["ingestionJob"]
    if found["status"] in ("STARTING", "IN_PROGRESS", "STOPPING"):
        return None
    return ": ".join([found["status"], *found.get("failureReasons", [])])

def attempt(call, state):
    try:
        return call()
    except Exception as error:
        code = getattr(error, "response", {{}}).get("Error", {{}}).get("Code")
        is_new = code == "AccessDeniedException" and time.time() < state["until"] - {LONGEST_WAIT_SECONDS} + 120
        return None if code in LATER or is_new else f"FAILED: {{error}}"

def named(source):
    knowledge_base, data_source = source.split("/")
    return {{"knowledgeBaseId": knowledge_base, "dataSourceId": data_source}}

def report(state):
    ended = {{**state["ended"], **dict.fromkeys([*state["waiting"], *state["jobs"]], "NOT ENDED IN TIME")}}
    counts = {{}}
    for outcome in ended.values():
        counts[outcome] = counts.get(outcome, 0) + 1
    return "; ".join(f"{{outcome}} ({{count}})" for outcome, count in counts.items())[:1000]
"""
"""Starts a job for each source that never had a complete one, unless it has documents, which shows that it takes them.
Whatever happens, the deployment goes on: that direct ingestion needs the job is documented and unconfirmed, and without
it documents become FAILED with a reason, which an operator can remove. A failed deployment would take everything back.
The function starts itself again before its time is over. IAM may not know its rights for up to two minutes."""


class FirstSync(Construct):
    """Synchronises each of these data sources once, after it was created, and waits for the end.

    The bucket is empty then, unless the deployer owns it: its documents are read, as by ``ragstack reconcile --full``.
    A job that takes longer goes on, and documents wait for it in the queue.

    Attributes:
        state: What became of the jobs, in words.
    """

    def __init__(self, scope: Construct, construct_id: str, *, sources: Sequence[KnowledgeBaseIds]) -> None:
        super().__init__(scope, construct_id)
        synchronised, role = inline_resource(
            self,
            "Synchronised",
            code=_SYNCHRONISE,
            description="Synchronises new data sources once",
            properties={"Sources": ["/".join(ids) for ids in sources]},
            timeout_seconds=MAX_FUNCTION_SECONDS,
            waits_seconds=MAX_WAIT_SECONDS,
            type_name="FirstSync",
        )
        permitted = grant_knowledge_bases(role, ACTIONS, [knowledge_base for knowledge_base, _ in sources])
        function = self.node.find_child("Function")
        assert isinstance(function, lambda_.Function), "an inline resource has a function"
        # A policy of its own, because the function waits for the role's.
        itself = iam.Policy(
            self,
            "Itself",
            roles=[role],
            statements=[iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function.function_arn])],
        )
        synchronised.node.add_dependency(*permitted, itself)
        self.state = synchronised.get_att_string("State")
