"""The CDK app: the stacks of RAGStack."""

import os
from collections.abc import Callable

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from infra import discovery
from infra.alarms import notify
from infra.checks import check_region
from infra.layers import LayerError
from infra.options import OptionError, Options
from infra.stacks import ApiStack, IngestionStack, StorageStack, choose_knowledge_base


def build(app: App, region: str | None = None, token_endpoint: Callable[[str], str | None] = lambda _: None) -> App:
    """Add the stacks that the app's context selects; *region* is None if it is not known."""
    options = Options.from_context(app.node.get_all_context())
    if (issuer := options.access_settings.oidc_issuer) and options.console_files is not None:
        options = options.model_copy(update={"token_endpoint": token_endpoint(issuer)})
    check_region(options, region)
    storage = StorageStack(app, f"{options.prefix}Storage", options=options)
    knowledge_base = choose_knowledge_base(app, options, storage.documents.bucket, region)
    path = IngestionStack(app, f"{options.prefix}Ingestion", storage, knowledge_base, options).path
    ApiStack(app, f"{options.prefix}Api", path=path, options=options)
    notify(storage.alarm_topic, app)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return app


if __name__ == "__main__":
    try:
        build(App(), os.environ.get("CDK_DEFAULT_REGION"), discovery.token_endpoint).synth()
    except (OptionError, LayerError) as error:
        raise SystemExit(str(error)) from None
