"""The CDK app: the stacks of RAGStack."""

import os
from pathlib import Path

from aws_cdk import Acknowledgment, App, CrossStackReferences, ReferenceStrength, Tags, Validations
from cdk_nag import AwsSolutionsChecks

from infra.alarms import notify
from infra.checks import check_region
from infra.discovery import Discovery, token_endpoint, undiscovered
from infra.everywhere import apply_everywhere
from infra.layers import LayerError
from infra.options import OptionError, Options
from infra.policy_sizes import check_policies
from infra.stacks import ApiStack, IngestionStack, StorageStack, choose_knowledge_base
from infra.target import Target


def build(app: App, region: str | None = None, discovery: Discovery = undiscovered) -> App:
    """Add the stacks that the app's context selects; *region* is None if it is not known."""
    options = Options.from_context(app.node.get_all_context())
    check_region(options, region)
    if options.target is Target.AWS:
        # The local CloudFormation has exports alone. On AWS, exports that nobody imports stay for earlier versions.
        CrossStackReferences.of(app).consume(ReferenceStrength.BOTH)
        transition = "Annotation::@aws-cdk/core:crossStackReferencesBothTransitional"
        Validations.of(app).acknowledge(Acknowledgment(id=transition, reason="Earlier versions import the exports"))
    storage = StorageStack(app, f"{options.prefix}Storage", options=options)
    knowledge_base = choose_knowledge_base(app, options, storage.documents.bucket, region)
    path = IngestionStack(app, f"{options.prefix}Ingestion", storage, knowledge_base, options).path
    ApiStack(app, f"{options.prefix}Api", path=path, options=options, discovery=discovery)
    notify(storage.alarm_topic, app)
    apply_everywhere(app, options)
    for tag in options.tags:
        name, _, value = tag.partition("=")
        Tags.of(app).add(name, value)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return app


if __name__ == "__main__":
    try:
        region = os.environ.get("CDK_DEFAULT_REGION")
        check_policies(Path(build(App(), region, token_endpoint).synth().directory), region)
    except (OptionError, LayerError) as error:
        raise SystemExit(str(error)) from None
