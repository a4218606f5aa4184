"""Writes the OpenAPI document, from which `npm run types` makes the types of the web app: ``python -m web.openapi``."""

from pathlib import Path

from lambdas.query.handler import app
from ragstack_common.http.description import describe
from ragstack_common.settings.access import AccessSettings

FILE = Path(__file__).parent / "src" / "api" / "openapi.json"

if __name__ == "__main__":
    described = describe(app, "", AccessSettings())
    if not FILE.exists() or FILE.read_text() != described:
        FILE.write_text(described)
