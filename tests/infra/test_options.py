"""What a deployer may write after --context, and what is said about the rest."""

import json
import re
from pathlib import Path

import pytest

from infra.access_options import DEFAULT_CALLBACKS, MAX_API_KEYS, MAX_CALLBACKS
from infra.engine import BEDROCK_EMBEDDINGS, EMBEDDINGS, IN_THE_LAYER, EngineConfig
from infra.options import OptionError, Options
from infra.target import Target
from ragstack_common.embedding import bedrock, kinds
from ragstack_common.search import known_backends
from ragstack_common.settings.access import AuthKind
from ragstack_common.settings.model_cache import KNOWN
from ragstack_common.settings.relevance import Calibrations
from ragstack_common.settings.reranking_weights import RerankingWeights

from .conftest import ACCESS, EXISTING, LOCAL


def reranked(reranker: object, **options: str) -> dict[str, str]:
    """A reranked search of another knowledge base."""
    backend = {"type": "bedrock", "knowledge_base_id": "ABCDEFGHIJ", **options}
    config = json.dumps({"reranker": reranker, "backend": backend})
    return {"retrieval_engine": "reranked", "retrieval_engine_config": config}


def embedded(embedding: str) -> dict[str, str]:
    return reranked("lexical", embedding=embedding)


def urls(number: int) -> str:
    return ",".join(f"https://app.example.com/{index}" for index in range(number))


def keys(number: int, name: str = "key") -> str:
    return ",".join(f"{name}{index}" for index in range(number))


def test_nothing_chosen_means_aws_with_iam_and_a_new_knowledge_base() -> None:
    options = Options.from_context({"@aws-cdk/core:checkSecretUsage": True, "aws:cdk:bundling-stacks": ["**"]})

    assert options == Options()
    assert (options.target, options.auth, options.knowledge_base_id) == (Target.AWS, (AuthKind.IAM,), None)


def test_the_local_target_needs_no_authentication_by_default() -> None:
    assert Options.from_context(LOCAL).auth == (AuthKind.NONE,)


def test_people_and_programs_can_be_combined() -> None:
    options = Options.from_context({"auth": "iam, oidc", **OIDC, "oidc_audience": "a,b", "questions_per_day": "5"})

    assert (options.auth, options.people) == ((AuthKind.IAM, AuthKind.OIDC), AuthKind.OIDC)
    assert options.access_settings.oidc_audience == ("a", "b")
    assert options.access_settings.questions_per_day == 5
    assert options.callback_urls == DEFAULT_CALLBACKS


def test_an_issuer_of_this_machine_is_for_the_local_target() -> None:
    issuer = "http://localhost:4570"

    options = Options.from_context({**LOCAL, "auth": "oidc", **OIDC, "oidc_issuer": issuer})

    assert options.access_settings.oidc_issuer == issuer


def test_an_invalid_access_file_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "access.json"
    file.write_text('{"labels": {"people": {"allow": ["people"]}}}')

    with pytest.raises(
        OptionError, match=r"labels\.people\.allow\.0: 'people' must be everyone, or a kind with a name"
    ):
        Options.from_context({"access": str(file)})


def test_a_user_pool_rejects_a_group_with_a_space(tmp_path: Path) -> None:
    file = tmp_path / "access.json"
    file.write_text('{"rights": {"read": ["group:All people"]}}')

    assert Options.from_context({"auth": "oidc", **OIDC, "access": str(file)})
    with pytest.raises(OptionError, match="the group 'All people'; Amazon Cognito takes"):
        Options.from_context({"auth": "cognito", "access": str(file)})


def test_the_command_line_overrides_a_file_of_settings(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    calibration = {"embedding": "hashed", "search_type": "HYBRID", "intercept": -3.0, "weights": {"vector": 5.0}}
    values = {"//": "from a test", "reranking_weights": {"vector": 1}, "filtered_score_boost": 1.1, "search_k": 7}
    values["relevance_calibration"] = {"calibrations": [calibration]}
    file.write_text(json.dumps(values))

    options = Options.from_context({"settings": str(file), "filtered_score_boost": "2"})

    assert options.query.reranking_weights == RerankingWeights(vector=1)
    assert options.query.relevance_calibration == Calibrations.read({"calibrations": [calibration]})
    assert (options.query.filtered_score_boost, options.query.search_k) == (2.0, 7)
    assert options.in_force["context"] == {"settings": str(file), "FILTERED_SCORE_BOOST": "2"}
    assert options.in_force["settings file"].keys() == {"RERANKING_WEIGHTS", "SEARCH_K", "RELEVANCE_CALIBRATION"}


def test_values_that_may_have_a_secret_are_not_listed() -> None:
    secrets = {"otel_exporter_otlp_endpoint": "https://user:secret@x.example", "otel_exporter_otlp_headers": "a=secret"}

    options = Options.from_context(secrets)

    assert {*options.in_force["context"].values()} == {"(hidden)"}
    assert "secret" in options.variables_of_functions["OTEL_EXPORTER_OTLP_HEADERS"]


def test_the_names_of_keys_are_not_listed_with_the_settings() -> None:
    options = Options.from_context({"auth": "api_key", "access": "none", "api_keys": "reader"})

    assert options.in_force["context"] == {"auth": "api_key", "access": "none"}


def test_the_file_of_a_layer_is_not_a_setting_of_the_functions(tmp_path: Path) -> None:
    """A deployment from another folder would change each function."""
    file = tmp_path / "layer.zip"
    file.touch()

    assert Options.from_context({"access": "none", "dependencies_layer": str(file)}).in_force == {
        "context": {"access": "none"}
    }


def test_a_target_is_a_file_of_settings_too(tmp_path: Path) -> None:
    file = tmp_path / "legal.txt"
    file.write_text('MULTI_CORPUS_METADATA=legal_us, legal_uk\nSEARCH_K=15\nRERANKING_WEIGHTS={"phrase": 1}\n')

    options = Options.from_context({"settings": str(file)})

    assert options.query.corpora == ("legal_us", "legal_uk")
    assert (options.query.search_k, options.query.reranking_weights.phrase) == (15, 1)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[1]", "is not a file of settings: it must be a JSON object"),
        ('{"serach_k": 7}', "context value 'serach_k' is unknown"),
        ('{"cosine_share": 2}', "cosine_share=2 is invalid: it must be a number from 0 to 1"),
        (
            '{"relevance_calibration": {"calibrations": []}}',
            "relevance_calibration is invalid: it is not a calibration",
        ),
        ('{"reranking_weights": {"vector": -1}}', "The reranking weight vector must be finite and 0 or"),
        ('{"reranking_weights": {"vektor": 1}}', "There is no reranking weight vektor: the weights are phrase,"),
    ],
)
def test_a_wrong_name_or_value_in_a_file_of_settings_is_named(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "settings.json"
    file.write_text(text)

    with pytest.raises(OptionError, match=re.escape(says)):
        Options.from_context({"settings": str(file)})


CERTIFICATE = "arn:aws:acm:eu-west-1:123456789012:certificate/0-a"
WEB_ACL = "arn:aws:wafv2:eu-west-1:123456789012:regional/webacl"
OIDC = {"oidc_issuer": "https://login.example.com/", "oidc_audience": "ragstack", "access": str(ACCESS)}
MILVUS = {"milvus_address": "milvus.example.com:19530", "retriever_tool_collections": "*"}


@pytest.mark.parametrize(
    ("context", "says"),
    [
        ({"target": "azure"}, "target=azure is invalid: it must be aws or local"),
        ({"auth": "none"}, "auth=none is for target=local: choose from iam, api_key, cognito and oidc"),
        ({**LOCAL, "auth": "cognito", "access": str(ACCESS)}, "target=local has auth=none and auth=oidc"),
        ({**LOCAL, "auth": "api_key"}, "target=local has auth=none and auth=oidc"),
        ({"auth": "iam,iam"}, "auth names a kind twice"),
        ({"auth": "iam,"}, "auth=iam, is invalid: names must be separated by one comma each"),
        ({"auth": "cognito,oidc", **OIDC}, "auth=cognito and auth=oidc exclude each other"),
        ({"auth": "iam,api_key"}, "auth=iam and auth=api_key exclude each other"),
        ({"auth": "oidc", "access": str(ACCESS)}, "auth=oidc needs oidc_issuer and oidc_audience"),
        ({"oidc_audience": "ragstack"}, "oidc_issuer and oidc_audience need auth=oidc"),
        ({"auth": "cognito", **OIDC}, "oidc_issuer and oidc_audience need auth=oidc"),
        ({"auth": "oidc", **OIDC, "oidc_issuer": "http://login.example.com"}, "oidc_issuer=http://login.example.com"),
        ({"auth": "oidc", **OIDC, "oidc_issuer": "http://localhost:80"}, "oidc_issuer=http://localhost:80 is invalid"),
        ({"auth": "oidc", **OIDC, "oidc_issuer": "login"}, "oidc_issuer=login is invalid: it must begin with https://"),
        ({"auth": "oidc", **OIDC, "oidc_issuer": "https://a/?b"}, "oidc_issuer=https://a/?b is invalid"),
        ({"auth": "oidc", **OIDC, "oidc_issuer": "https://[a"}, "oidc_issuer=https://[a is invalid"),
        ({"auth": "oidc", **OIDC, "oidc_issuer": "https://a; script-src *"}, "oidc_issuer=https://a; script-src * is"),
        ({"auth": "cognito"}, "auth=cognito needs access: write a file such as samples/access.json"),
        ({"access": "/nowhere.json"}, "access=/nowhere.json is invalid: there is no such file"),
        ({"api_keys": "reader"}, "api_keys needs auth=api_key"),
        ({"api_key_requests_per_day": "1"}, "api_key_requests_per_day needs auth=api_key"),
        ({"auth": "api_key", "api_keys": "a,A"}, "api_keys names a key twice"),
        ({"auth": "api_key", "api_keys": 'a"'}, 'api_keys=a" is invalid: it must be names of a letter, then'),
        ({"callback_urls": "https://a"}, "callback_urls needs auth=cognito"),
        (
            {"auth": "cognito", "access": str(ACCESS), "callback_urls": "http://a/b"},
            "callback_urls=http://a/b is invalid: http is for localhost alone",
        ),
        (
            {"ask_requests_per_second": "30"},
            "ask_requests_per_second=30 exceeds api_requests_per_second=20",
        ),
        (
            {"auth": "cognito", "access": str(ACCESS), "callback_urls": urls(MAX_CALLBACKS)},
            "callback_urls names 100 URLs; at most 99 are possible",
        ),
        ({"auth": "api_key", "access": "none", "api_keys": keys(MAX_API_KEYS + 1)}, "api_keys names 51 keys; at most"),
        ({"auth": "oidc", **OIDC, "oidc_issuer": "https://login.example.com/müller"}, "oidc_issuer=https://login.e"),
        ({"mfa": "required"}, "mfa needs auth=cognito"),
        ({"auth": "cognito", "access": str(ACCESS), "mfa": "optional"}, "mfa=optional is invalid: it must be off or"),
        (
            {"auth": "cognito", "access": str(ACCESS), "mfa": "required", "user_pool": "eu-west-1_aBcDeFgHi"},
            "mfa cannot be changed in the pool that user_pool names",
        ),
        (
            {"auth": "cognito", "access": "none", "user_pool": "people"},
            "user_pool=people is invalid: it must be the id",
        ),
        (
            {"auth": "cognito", "access": "none", "email_sender": "ragstack"},
            "email_sender=ragstack is invalid: it must",
        ),
        ({"alarm_email": "ops"}, "alarm_email=ops is invalid: it must be an e-mail address"),
        ({"alarm_topic": "operations"}, "alarm_topic=operations is invalid: it must be the ARN of an SNS topic"),
        ({"monthly_budget": "100"}, "monthly_budget needs alarm_email or alarm_topic"),
        ({"api_domain": "api.example.com"}, "api_domain and api_certificate belong together"),
        ({"console_domain": "https://a.example.com"}, "console_domain=https://a.example.com is invalid: it must be a"),
        ({"console_questions": "a?;" * 9}, f"console_questions={'a?;' * 9} is invalid: it must be up to 8 questions"),
        (
            {"console_domain": "a.example.com", "console_certificate": CERTIFICATE},
            "console_certificate=arn:aws:acm:eu-west-1:123456789012:certificate/0-a is invalid: CloudFront needs one",
        ),
        (
            {
                "console_domain": "a.example.com",
                "console_certificate": CERTIFICATE.replace("eu-west-1", "us-east-1"),
                "api_domain": "a.example.com",
                "api_certificate": CERTIFICATE,
            },
            "console_domain and api_domain must differ",
        ),
        ({"web_acls": f"{WEB_ACL}/a/b,{WEB_ACL}/c/d"}, "web_acls names two with the scope REGIONAL"),
        ({"tags": "project"}, "tags=project is invalid: it must be NAME=VALUE pairs separated by commas"),
        ({"tags": "aws:cloudformation:stack-name=a"}, "tags=aws:cloudformation:stack-name=a is invalid"),
        ({"web_acls": WEB_ACL}, f"web_acls={WEB_ACL} is invalid: it must be ARNs of web ACLs"),
        ({"web_acls": f"{WEB_ACL}/a/b".replace("regional", "global")}, "a web ACL of the scope CLOUDFRONT is for the"),
        ({**LOCAL, "api_domain": "a.example.com", "api_certificate": CERTIFICATE}, "api_domain is for target=aws"),
        ({"answers_concurrency": "0"}, "answers_concurrency=0 is invalid: it must be a whole number from 1 to 10,000"),
        ({"audit_bus": "a b"}, "audit_bus=a b is invalid: it must be the name of an event bus"),
        ({"api_auth": "none"}, "context value 'api_auth' is unknown"),
        ({"knowledge_base": "existing"}, "knowledge_base=existing needs knowledge_base_id"),
        ({**EXISTING, "knowledge_base_id": "KB123"}, "knowledge_base_id=KB123 is invalid: it must be ten letters or"),
        ({"knowledge_base_id": "ABCDEFGHIJ"}, "knowledge_base_id needs knowledge_base=existing"),
        ({"contextual_headers": "maybe"}, "contextual_headers=maybe is invalid: it must be on or off"),
        (
            {**EXISTING, "contextual_headers": "on"},
            "contextual_headers cannot be combined with knowledge_base=existing",
        ),
        ({"target": "local"}, "target=local needs knowledge_base=existing"),
        ({"bedrock_endpoint": "http://localhost:1"}, "bedrock_endpoint is for target=local"),
        ({"prefix": "1st"}, "prefix=1st is invalid: it must be a letter, then"),
        (
            {"retrieval_timeout_seconds": "30"},
            "retrieval_timeout_seconds=30 is invalid: it must be a number from 0.1 to 24",
        ),
        ({"reconcile_schedule": "nightly"}, "reconcile_schedule=nightly is invalid: it must be cron("),
        ({"reconcile_schedule": "rate(1 days)"}, "reconcile_schedule=rate(1 days) is invalid"),
        ({"vector_store": "OTHER"}, "vector_store needs knowledge_base=existing"),
        (
            {"alarm_topic": "arn:aws:sns:eu-west-1:123456789012:a", "alarm_email": "a@example.com"},
            "alarm_topic and alarm_email exclude each other",
        ),
        ({"dependencies_layer": "/nowhere.zip"}, "dependencies_layer=/nowhere.zip is invalid: there is no such file"),
        ({"knowlege_base": "existing"}, "context value 'knowlege_base' is unknown: choose from access, alarm_email,"),
        (
            {"search_k": "101", "auth": "x"},
            "auth=x is invalid: it must be one or more of iam, api_key, cognito, oidc, none; search_k=101 is invalid",
        ),
        ({"retrieval_engine": "chroma"}, "the engine chroma needs packages that the layer lacks: build"),
        (
            {"retrieval_engine": "federated", "retrieval_engine_config": '{"backends": [{"type": "chroma"}]}'},
            "the engine chroma needs packages that the layer lacks",
        ),
        (
            {"retrieval_engine": "milvus", "retrieval_engine_config": '{"collection_name": "papers"}'},
            "the engine milvus needs milvus_address, such as milvus.example.com:19530",
        ),
        ({"retriever_tool_engine": "milvus"}, "milvus_address needs retriever_tool_collections: name the collections"),
        (
            {**MILVUS, "milvus_address": "milvus.db"},
            "milvus_address=milvus.db is invalid: a deployed function needs the address of a server",
        ),
        (
            {**MILVUS, "retriever_tool_embedding": "onnx:/models/mini"},
            "the embedding onnx needs packages that the layer lacks",
        ),
        (
            {**MILVUS, "otel_exporter_otlp_endpoint": "http://collector:4318", "milvus_layer": __file__},
            "milvus_layer and tracing_layer must be the same zip file",
        ),
        (
            {"otel_exporter_otlp_endpoint": "collector:4318"},
            "otel_exporter_otlp_endpoint is invalid: it must be a URL",
        ),
        (
            {**MILVUS, "milvus_secret": "milvus"},
            "milvus_secret=milvus is invalid: it must be the whole ARN of a secret",
        ),
        ({"vpc_subnet_ids": "subnet-1"}, "vpc_subnet_ids=subnet-1 is invalid: it must be ids of subnets"),
        (
            {"vpc_subnet_ids": "subnet-0123456789abcdef0"},
            "vpc_subnet_ids and vpc_security_group_ids belong together: give both",
        ),
        ({"retriever_tool_collections": "*"}, "retriever_tool_collections=* is invalid: it must name"),
        ({"retriever_tool_collections": '{"a": 7}'}, "retriever_tool_collections is invalid: each collection needs"),
        (
            reranked("acme"),
            "the reranker acme needs packages that the layer lacks",
        ),
        (
            reranked("bedrock:cohere.rerank-v3-5:0"),
            "the engine reranked cannot be deployed: the reranker bedrock needs the ARN of a foundation model",
        ),
        (
            reranked({"type": "bedrock", "model_arn": "arn:aws:bedrock:us-east-1::foundation-model/a.b"}),
            "the engine reranked cannot be deployed: the reranker bedrock has no option model_arn",
        ),
        (
            {"retrieval_engine_config": '{"reranker": "bedrock"}'},
            "the engine cannot be created: The backend bedrock cannot be created from this configuration: ",
        ),
        (
            {"retriever_tool_collections": '{"ABCDEFGHIJ": {"rows": 7}}'},
            "the engine cannot be created: The backend bedrock cannot be created from this configuration: ",
        ),
        (
            {"retrieval_engine_config": '{"max_slices": 0}'},
            "the engine cannot be created: The backend bedrock cannot be created from this configuration: ",
        ),
        (
            {"retrieval_engine": "cached", "retrieval_engine_config": '{"ttl": 5, "backend": {"type": "bedrock"}}'},
            "the engine cannot be created: The backend cached cannot be created from this configuration: ",
        ),
        (
            {"retrieval_engine": "reranked", "retrieval_engine_config": '{"reranker": "bedrock"}'},
            "the engine reranked cannot be deployed: reranked needs backend in its configuration",
        ),
        (
            {"retrieval_engine": "vector_store", "retrieval_engine_config": '{"connection_string": "bedrock://KB"}'},
            "the engine vector_store cannot be deployed: its permissions are derived from the options of the engine",
        ),
        (embedded("word2vec"), "the engine reranked cannot be deployed: unknown embedding 'word2vec': choose one"),
        (
            embedded("bedrock:amazon.nova-embed"),
            "the engine reranked cannot be deployed: the embedding 'bedrock:amazon.nova-embed' needs the id or ARN",
        ),
    ],
)
def test_an_invalid_value_is_refused_with_what_is_allowed(context: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError) as refused:
        Options.from_context(context)

    assert str(refused.value).startswith(says)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("schedule", ["cron(15 1 ? * MON-FRI *)", "rate(1 day)", "rate(12 hours)", "off"])
def test_the_deployer_chooses_when_reconciliation_runs(schedule: str) -> None:
    assert Options.from_context({"reconcile_schedule": schedule}).reconcile_schedule == schedule


def test_an_existing_knowledge_base_has_limits_on_s3_vectors_only() -> None:
    assert Options.from_context(EXISTING).vector_store == "OTHER"
    assert Options.from_context({**EXISTING, "vector_store": "s3_vectors"}).vector_store == "S3_VECTORS"


def test_the_local_target_checks_documents_sooner_by_default() -> None:
    assert Options.from_context(LOCAL).ingestion.first_delay_seconds == 1
    assert Options.from_context({**LOCAL, "status_first_delay_seconds": "0"}).ingestion.first_delay_seconds == 0


def test_numbers_and_booleans_may_come_from_cdk_json() -> None:
    options = Options.from_context({"retrieval_timeout_seconds": 3, "multislice_enabled": False})

    assert (options.query.timeout_seconds, options.query.multislice_enabled) == (3, False)


def test_objects_of_cdk_json_and_text_configure_the_same_engine() -> None:
    config = {"backend": {"type": "bedrock", "knowledge_base_id": "ABCDEFGHIJ"}}

    written = Options.from_context({"retrieval_engine": "cached", "retrieval_engine_config": config})
    typed = Options.from_context({"retrieval_engine": "cached", "retrieval_engine_config": json.dumps(config)})

    assert written == typed
    assert written.engines == [EngineConfig({**config, "type": "cached"})]


def test_the_stacks_own_knowledge_base_is_not_another_engine() -> None:
    assert Options.from_context({}).engines == []
    assert Options.from_context({"retrieval_engine": "bedrock"}).engines == []


def test_every_engine_in_the_layer_exists() -> None:
    assert set(known_backends()) >= IN_THE_LAYER


def test_synthesis_accepts_the_embeddings_that_functions_load() -> None:
    forms = {form.partition("[")[0].partition(":")[0] for form in kinds.FORMS.replace(" or ", ", ").split(", ")}
    assert forms - {*KNOWN} == EMBEDDINGS  # no function has a model of the user's cache
    assert {*bedrock._SHAPES} == {*BEDROCK_EMBEDDINGS}
