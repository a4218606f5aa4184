"""The CDK app: the stacks of RAGStack."""

import os

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from infra.alarms import notify
from infra.checks import check_region
from infra.discovery import Discovery, token_endpoint, undiscovered
from infra.layers import LayerError
from infra.options import OptionError, Options
from infra.stacks import ApiStack, IngestionStack, StorageStack, choose_knowledge_base


def build(app: App, region: str | None = None, discovery: Discovery = undiscovered) -> App:
    """Add the stacks that the app's context selects; *region* is None if it is not known."""
    options = Options.from_context(app.node.get_all_context())
    check_region(options, region)
    storage = StorageStack(app, f"{options.prefix}Storage", options=options)
    knowledge_base = choose_knowledge_base(app, options, storage.documents.bucket, region)
    path = IngestionStack(app, f"{options.prefix}Ingestion", storage, knowledge_base, options).path
    ApiStack(app, f"{options.prefix}Api", path=path, options=options, discovery=discovery)
    notify(storage.alarm_topic, app)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return app


if __name__ == "__main__":
    try:
        build(App(), os.environ.get("CDK_DEFAULT_REGION"), token_endpoint).synth()
    except (OptionError, LayerError) as error:
        raise SystemExit(str(error)) from None
