"""Whole runs of the checks of the services, and their reports."""

import fcntl
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from ragstack_local.certify import documents, rights, run
from ragstack_local.certify import site as site_module
from ragstack_local.certify.catalogue import SERVICES, chosen
from ragstack_local.certify.check import Check, NotTried, Outcome, Source, Verdict
from ragstack_local.certify.costs import EXPECTED, cost_of
from ragstack_local.certify.fixtures import create_bucket
from ragstack_local.certify.journal import PLANNED, REMOVED, Journal, Resource, dead_journals
from ragstack_local.certify.report import Report
from ragstack_local.certify.runner import run_checks
from ragstack_local.certify.site import Place, Site, error_code

pytestmark = pytest.mark.xdist_group("certify-services")

ROOT = Path(__file__).parents[3]
ACCOUNT = "123456789012"


@dataclass(frozen=True)
class AsAws(Place):
    """The local services, used as an AWS account is."""

    @property
    def is_aws(self) -> bool:
        return True


@pytest.fixture(scope="module")
def finished(place: Place, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A run of all checks of the services against the local Bedrock."""
    session = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test", region_name="us-east-1")
    report, left, is_interrupted = run.certify(session, place, SERVICES, tmp_path_factory.mktemp("journals"))
    assert not left
    assert not is_interrupted
    return report


@pytest.mark.slow
def test_nothing_differs_from_the_local_stack(finished: Report) -> None:
    different = [outcome for outcome in finished.outcomes if outcome.verdict is Verdict.DIFFERS]
    untried = [outcome for outcome in finished.outcomes if outcome.verdict is Verdict.NOT_TRIED]

    assert different == []
    assert {outcome.check.name for outcome in untried} == {check.name for check in SERVICES if check.aws_only}
    assert [outcome.check for outcome in finished.outcomes] == list(SERVICES)


@pytest.mark.slow
def test_a_report_names_no_resource_and_no_content(finished: Report, tmp_path: Path) -> None:
    paths = finished.write(tmp_path, "local")

    for path in paths:
        text = path.read_text(encoding="utf-8")
        assert "ragstack-certify" not in text
        assert "arn:" not in text
        assert "s3://" not in text
        assert "127.0.0.1" not in text
        assert re.search(r"\b\d{12}\b", text) is None
        for word in (documents.ASCII_WORD, documents.UTF8_WORD, documents.CHINESE_TEXT, documents.READER, "cheetah."):
            assert word not in text


def test_a_report_has_no_names_even_if_an_observation_does(tmp_path: Path) -> None:
    error = (
        "FAILED: User arn:aws:sts::123456789012:assumed-role/RagStackCertify0ab1-Role/x is not authorized on"
        " s3://ragstack-certify-0ab1/secret.md (123456789012, https://vpce-1.example.com)"
    )
    outcomes = [
        Outcome(a_check("a", str), Verdict.DIFFERS, {"stack": [error, 3, None], error: True}),
        Outcome(a_check("b", str), Verdict.MATCHES, error),
        Outcome(a_check("c", str), Verdict.NOT_TRIED, reason=error),
    ]
    report = Report("AWS", "us-east-1", "2026-11-28", 1.0, {}, outcomes, {}, {})

    for path in report.write(tmp_path, "aws"):
        text = path.read_text(encoding="utf-8")
        assert "is not authorized" in text
        for name in ("123456789012", "arn:", "0ab1", "s3://", "vpce"):
            assert name not in text


@pytest.mark.slow
def test_a_report_for_programs_has_what_people_see(finished: Report) -> None:
    data = json.loads(json.dumps(finished.to_json()))
    text = finished.to_markdown()

    assert [check["name"] for check in data["checks"]] == [check.name for check in SERVICES]
    assert data["counts"]["matches"] == sum(check["verdict"] == "matches" for check in data["checks"])
    assert all(f"| {check['name']} |" in text for check in data["checks"])
    assert 'c `{"legs": 4,' in text  # what the letter stands for


def test_the_recorded_run_has_every_check() -> None:
    recorded = json.loads((ROOT / "docs" / "certificates" / "local.json").read_text(encoding="utf-8"))["checks"]
    expected = {check["name"]: check["expected"] for check in recorded}

    assert {name: expected.get(name) for name in (check.name for check in SERVICES)} == {
        check.name: check.expected for check in SERVICES
    }
    assert not [check["name"] for check in recorded if check["verdict"] == Verdict.DIFFERS]


@pytest.mark.slow
def test_the_policy_allows_all_calls_of_a_run(finished: Report) -> None:
    assert set(rights.actions_of([*finished.calls])) <= set(rights.actions_of(rights.OPERATIONS))


def test_the_policy_in_the_documentation_is_that_of_the_checks() -> None:
    assert json.loads((ROOT / "docs" / "certificates" / "policy.json").read_text()) == rights.policy()


def test_the_names_of_checks_are_unique_and_name_existing_modules() -> None:
    names = [check.name for check in SERVICES]
    modules = {check.held_in.replace(".", "/") for check in SERVICES if check.held_in}

    assert len(set(names)) == len(names)
    for module in modules:
        assert (ROOT / f"{module}.py").is_file() or (ROOT / module / "__init__.py").is_file(), module


@pytest.fixture
def as_aws(place: Place, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr(site_module, "AWS_POLL_SECONDS", 0.05)
    monkeypatch.setattr(run, "WAIT_SECONDS", 0.05)
    # moto signs for any Region; the local Bedrock has one.
    return AsAws("us-east-1", ACCOUNT, place.endpoints)


@pytest.mark.slow
def test_the_requests_of_a_run_on_aws_are_valid_and_its_role_is_removed(
    session: Any, as_aws: Place, tmp_path: Path
) -> None:
    checks = chosen(("ingestion.creation", "retrieval", "managed"))
    iam = session.client("iam", endpoint_url=as_aws.endpoint("iam"))
    policies: list[str] = []

    def keep(params: dict[str, Any], **_: Any) -> None:
        policies.append(params["PolicyDocument"])

    session.events.register("provide-client-params.iam.PutRolePolicy", keep)
    report, left, _ = run.certify(session, as_aws, checks, tmp_path)

    assert [outcome for outcome in report.outcomes if outcome.verdict is not Verdict.MATCHES] == []
    assert not left
    assert report.target == "AWS"
    assert report.costs["searches"] > 0
    assert not [each for each in iam.list_roles()["Roles"] if each["RoleName"].startswith("ragstack-certify")]
    (policy,) = policies
    assert {"s3vectors:DeleteVectors", "s3:GetObject"} <= {
        action for statement in json.loads(policy)["Statement"] for action in statement["Action"]
    }


@pytest.mark.parametrize(("region", "constraint"), [("us-east-1", None), ("eu-west-1", "eu-west-1")])
def test_a_bucket_is_created_in_the_region_of_the_run(
    session: Any, place: Place, tmp_path: Path, region: str, constraint: str | None
) -> None:
    journal = Journal.begin(tmp_path, f"bucket{region}", place.fields)
    site = Site(session, AsAws(region, ACCOUNT, place.endpoints), f"bucket{region}", journal)

    create_bucket(site, site.name())

    s3 = site.client("s3")
    assert s3.get_bucket_location(Bucket=site.name())["LocationConstraint"] == constraint
    s3.delete_bucket(Bucket=site.name())


def a_check(name: str, observe: Any, topic: str = "topic", **more: Any) -> Check:
    belief = {"belief": "A belief", "source": Source.GUESS, "used_by": "a test", "expected": "expected", **more}
    return Check(name=name, topic=topic, observe=observe, **belief)


def outcomes_of(session: Any, place: Place, folder: Path, *checks: Check, **more: Any) -> list[tuple[str, Any]]:
    journal = Journal.begin(folder, "outcomes", place.fields)
    found = run_checks(Site(session, place, "outcomes", journal, **more), checks)
    journal.end()
    return [(outcome.verdict.value, outcome.observed or outcome.reason) for outcome in found]


def test_errors_of_aws_are_observed_and_refusals_of_the_caller_are_not(
    session: Any, place: Place, tmp_path: Path
) -> None:
    def unknown_bucket(site: Site) -> Any:
        return site.client("s3").list_objects_v2(Bucket="ragstack-certify-never-there")

    def refused(site: Site) -> Any:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "arn:aws:..."}}, "Retrieve")

    def expired(site: Site) -> Any:
        return error_code(lambda: raised("ExpiredToken"))

    def raised(code: str, **metadata: Any) -> None:
        raise ClientError({"Error": {"Code": code}, "ResponseMetadata": metadata}, "Retrieve")  # type: ignore[typeddict-item]

    def busy(site: Site) -> Any:
        raised("ThrottlingException", MaxAttemptsReached=True)

    def other_form(site: Site) -> Any:
        return site.connection.bucket  # type: ignore[union-attr] # there is none

    found = outcomes_of(
        session,
        place,
        tmp_path,
        a_check("a", unknown_bucket, expected={"error": "NoSuchBucket"}),
        a_check("b", refused),
        a_check("c", other_form),
        a_check("d", expired),
        a_check("e", busy),
        a_check("f", busy, expected={"error": "ThrottlingException"}),
    )

    assert found == [
        ("matches", {"error": "NoSuchBucket"}),
        ("not tried", "Retrieve answers AccessDeniedException"),
        ("differs", {"raised": "AttributeError"}),
        ("not tried", "Retrieve answers ExpiredToken"),
        ("not tried", "Retrieve answers ThrottlingException, as often as it is tried"),
        ("matches", {"error": "ThrottlingException"}),
    ]


def test_what_a_fixture_cannot_make_is_the_reason_of_every_check_that_needs_it(
    session: Any, place: Place, tmp_path: Path
) -> None:
    made = []

    def broken(site: Site) -> Any:
        """The broken thing."""
        made.append(1)
        return site.client("s3").list_objects_v2(Bucket="ragstack-certify-never-there")

    checks = [a_check(name, lambda site: site.shared(broken)) for name in "ab"]

    found = outcomes_of(session, place, tmp_path, *checks)

    assert found == [("not tried", "The broken thing: ListObjectsV2 answers NoSuchBucket")] * 2
    assert len(made) == 1


def test_a_check_waits_no_longer_than_its_time(session: Any, place: Place, tmp_path: Path) -> None:
    def waits(site: Site) -> Any:
        return site.eventually(lambda: False, "the tide")

    found = outcomes_of(session, place, tmp_path, a_check("a", waits, seconds=0.2), a_check("b", lambda _: "expected"))

    assert found == [("not tried", "out of time, waiting for the tide"), ("matches", "expected")]


def test_what_is_left_when_the_time_of_a_run_ends_is_not_tried(session: Any, place: Place, tmp_path: Path) -> None:
    found = outcomes_of(session, place, tmp_path, a_check("a", lambda _: "expected"), seconds=0)

    assert found == [("not tried", "out of time")]


def test_checks_of_rates_start_when_all_others_have_ended(session: Any, place: Place, tmp_path: Path) -> None:
    order: list[str] = []

    def tried(name: str) -> Any:
        def observe(site: Site) -> Any:
            if name == "slow":
                site.pause(0.2)
            order.append(name)
            return "expected"

        return observe

    outcomes_of(
        session,
        place,
        tmp_path,
        a_check("rates", tried("rates"), "limits"),
        a_check("slow", tried("slow"), "one"),
        a_check("quick", tried("quick"), "two"),
    )

    assert order == ["quick", "slow", "rates"]


def test_a_stopped_run_makes_no_further_call(session: Any, place: Place, tmp_path: Path) -> None:
    site = Site(session, place, "stopped", Journal.begin(tmp_path, "stopped", place.fields))
    site.stopping.set()

    with pytest.raises(NotTried, match="interrupted"):
        site.client("s3").list_buckets()


def test_a_resource_that_existed_before_is_never_removed(session: Any, place: Place, tmp_path: Path) -> None:
    journal = Journal.begin(tmp_path, "existing", place.fields)
    site = Site(session, place, "existing", journal)
    vectors = site.client("s3vectors")
    vectors.create_vector_bucket(vectorBucketName="ragstack-certify-existing")

    with pytest.raises(vectors.exceptions.ConflictException), site.creating("vector bucket", site.name()):
        vectors.create_vector_bucket(vectorBucketName=site.name())

    assert journal.remaining() == []
    vectors.delete_vector_bucket(vectorBucketName=site.name())


def test_the_last_line_of_a_killed_run_may_be_incomplete(place: Place, tmp_path: Path) -> None:
    journal = Journal.begin(tmp_path, "killed", place.fields)
    journal.note(Resource("bucket", "b"), PLANNED)
    with journal.path.open("a") as text:
        text.write('{"state": "planned", "kind": "buc')

    assert [resource.name for resource in journal.remaining()] == ["b"]

    journal._file.close()
    with dead_journals(tmp_path) as [dead]:
        dead.note(Resource("bucket", "b"), REMOVED)
    assert not journal.path.exists()


def test_a_journal_that_begins_is_never_that_of_a_dead_run(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = fcntl.flock

    def with_clean_up(*arguments: Any) -> None:
        """Look for dead runs before and after a journal is locked."""
        monkeypatch.setattr(fcntl, "flock", lock)
        for _ in range(2):
            with dead_journals(tmp_path) as dead:
                assert dead == []
            lock(*arguments)

    monkeypatch.setattr(fcntl, "flock", with_clean_up)

    journal = Journal.begin(tmp_path, "begins", place.fields)

    journal.note(Resource("bucket", "b"), PLANNED)
    assert [resource.name for resource in journal.remaining()] == ["b"]


def test_a_run_that_ends_while_dead_ones_are_looked_for_is_not_one(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, lock = Journal.begin(tmp_path, "ends", place.fields), fcntl.flock

    def after_the_end(*arguments: Any) -> None:
        journal.end()
        lock(*arguments)

    monkeypatch.setattr(fcntl, "flock", after_the_end)

    with dead_journals(tmp_path) as dead:
        assert dead == []


def test_costs_are_the_sum_of_the_calls_and_about_a_dollar() -> None:
    assert cost_of({"bedrock-agent-runtime.Retrieve": 500, "iam.CreateRole": 1}) == {"searches": 0.5}
    assert 0.5 < sum(EXPECTED.values()) < 1.5


def test_rights_that_the_caller_lacks_are_named(session: Any, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    iam = session.client("iam")
    monkeypatch.setattr(session, "client", lambda *_: iam)
    role = {
        "Path": "/team/",
        "RoleName": "Developer",
        "RoleId": "AROAEXAMPLEEXAMPLE",
        "Arn": f"arn:aws:iam::{ACCOUNT}:role/team/Developer",
        "CreateDate": "2026-01-01T00:00:00Z",
    }
    caller = f"arn:aws:sts::{ACCOUNT}:assumed-role/Developer/session"
    with Stubber(iam) as stubber:
        for resource, actions in rights._statements(ACCOUNT, "probe"):
            stubber.add_response("get_role", {"Role": role}, {"RoleName": "Developer"})
            results = [
                {
                    "EvalActionName": action,
                    "EvalDecision": "implicitDeny" if action == "bedrock:Retrieve" else "allowed",
                }
                for action in actions
            ]
            expected = {"PolicySourceArn": role["Arn"], "ActionNames": actions, "ResourceArns": [resource]}
            stubber.add_response("simulate_principal_policy", {"EvaluationResults": results}, expected)

        missing = rights.missing_rights(session, Place("us-east-1", ACCOUNT), caller)

    assert missing == ["bedrock:Retrieve"]


def test_rights_that_cannot_be_read_are_unknown(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    iam = session.client("iam")
    monkeypatch.setattr(session, "client", lambda *_: iam)
    with Stubber(iam) as stubber:
        stubber.add_client_error("simulate_principal_policy", "AccessDenied")

        assert rights.missing_rights(session, Place("us-east-1", ACCOUNT), f"arn:aws:iam::{ACCOUNT}:user/ann") is None


def test_the_time_of_a_fixture_is_not_that_of_the_check(session: Any, place: Place, tmp_path: Path) -> None:
    def slow(site: Site) -> Any:
        """The slow thing."""
        site.pause(0.4)

    def waits(site: Site) -> Any:
        site.shared(slow)
        site.pause(0.1)
        return "expected"

    assert outcomes_of(session, place, tmp_path, a_check("a", waits, seconds=0.3)) == [("matches", "expected")]


@pytest.mark.slow
def test_a_region_without_managed_knowledge_bases_is_the_reason(session: Any, place: Place, tmp_path: Path) -> None:
    elsewhere = AsAws("sa-east-1", ACCOUNT, place.endpoints)

    (found,) = outcomes_of(session, elsewhere, tmp_path, *chosen(("managed.creation",)))

    assert found == ("not tried", "The managed knowledge base: the Region has no managed knowledge bases")
