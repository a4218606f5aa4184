"""The CDK app: the stacks of RAGStack."""

from aws_cdk import App, Validations
from cdk_nag import AwsSolutionsChecks

from infra.layers import LayerError
from infra.options import OptionError, Options
from infra.stacks.api import ApiStack
from infra.stacks.ingestion import IngestionStack
from infra.stacks.knowledge_base import choose_knowledge_base
from infra.stacks.storage import StorageStack


def build(app: App) -> App:
    """Add the stacks that the app's context asks for."""
    options = Options.from_context(app.node.get_all_context())
    storage = StorageStack(app, f"{options.prefix}Storage", options=options)
    knowledge_base = choose_knowledge_base(app, options, storage.documents.bucket)
    name = f"{options.prefix}Ingestion"
    path = IngestionStack(app, name, storage=storage, knowledge_base=knowledge_base, options=options).path
    ApiStack(app, f"{options.prefix}Api", path=path, options=options)
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return app


if __name__ == "__main__":
    try:
        build(App()).synth()
    except (OptionError, LayerError) as error:
        raise SystemExit(str(error)) from None
