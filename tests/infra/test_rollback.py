"""An upgrade finds what earlier stacks import, and nothing in the stacks holds an earlier version back.

CloudFormation refuses to remove an export that another stack imports.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.infra.conftest import LOCAL

pytestmark = pytest.mark.xdist_group("synthesized stacks")

IMPORTED_BEFORE = frozenset(
    {
        "RagStackIngestion:ExportsOutputFnGetAttJobsQueue86ED6666ArnE154B711",
        "RagStackIngestion:ExportsOutputFnGetAttStatusQueue1EAB2D15Arn8E9716C0",
        "RagStackIngestion:ExportsOutputRefConversionQueue23297C9C8A21D97B",
        "RagStackIngestion:ExportsOutputRefJobsQueue86ED6666E80AB877",
        "RagStackIngestion:ExportsOutputRefLargeFilesQueueB6461C7ECEAC3A2F",
        "RagStackIngestion:ExportsOutputRefReceiptsQueue30E2F02BB5EE796A",
        "RagStackIngestion:ExportsOutputRefStatusQueue1EAB2D15EBB2D8F3",
        "RagStackStorage:ExportsOutputFnGetAttChangesDeadLetters18B289EFArnE2669F38",
        "RagStackStorage:ExportsOutputFnGetAttChangesDeadLetters18B289EFQueueName01E5DCAF",
        "RagStackStorage:ExportsOutputFnGetAttChangesEventsC7A03099ArnE1C1B5F0",
        "RagStackStorage:ExportsOutputFnGetAttChangesEventsC7A03099QueueName50777E1F",
        "RagStackStorage:ExportsOutputFnGetAttDocumentsBucket089EA665Arn9C7B4550",
        "RagStackStorage:ExportsOutputFnGetAttRegistryTableDB777839Arn16750D15",
        "RagStackStorage:ExportsOutputFnGetAttSnapshotBucket0C603D6FArn6945E682",
        "RagStackStorage:ExportsOutputRefChangesDeadLetters18B289EFB28482FB",
        "RagStackStorage:ExportsOutputRefChangesEventsC7A030991121FC67",
        "RagStackStorage:ExportsOutputRefDocumentsBucket089EA6651B1BFD54",
        "RagStackStorage:ExportsOutputRefRegistryTableDB777839ED28CC46",
        "RagStackStorage:ExportsOutputRefSnapshotBucket0C603D6FC27ACD61",
    }
)
"""What stacks of versions up to November 2026 import."""


def exported(assembly: Any) -> set[str]:
    return {
        output["Export"]["Name"]
        for template in assembly.templates.values()
        for output in template.get("Outputs", {}).values()
        if "Export" in output
    }


def test_what_deployed_stacks_import_is_still_exported(with_headers: Any) -> None:
    """The new storage stack is deployed while the earlier stacks still use it."""
    assert exported(with_headers) >= IMPORTED_BEFORE


@pytest.mark.parametrize("stacks", ["aws", "everything", "existing", "chosen"])
def test_no_stack_imports_what_an_earlier_version_may_not_export(stacks: str, request: pytest.FixtureRequest) -> None:
    """The earlier storage stack is deployed while these stacks still use it."""
    assembly = request.getfixturevalue(stacks)

    assert "Fn::ImportValue" not in json.dumps(assembly.templates)
    assert "Fn::GetStackOutput" in json.dumps(assembly.templates["RagStackApi"])


def test_the_stacks_are_deployed_in_order(aws: Any) -> None:
    artifacts = json.loads(Path(aws.folder / "manifest.json").read_text())["artifacts"]
    before = {
        name: {each for each in artifacts[name]["dependencies"] if each.startswith("RagStack") and "." not in each}
        for name in aws.templates
    }

    assert before == {
        "RagStackStorage": set(),
        "RagStackKnowledgeBase": {"RagStackStorage"},
        "RagStackIngestion": {"RagStackKnowledgeBase", "RagStackStorage"},
        "RagStackApi": {"RagStackIngestion", "RagStackKnowledgeBase", "RagStackStorage"},
    }


def test_the_local_cloudformation_has_exports_alone(synthesize: Any) -> None:
    assert "Fn::GetStackOutput" not in json.dumps(synthesize(**LOCAL).templates)
