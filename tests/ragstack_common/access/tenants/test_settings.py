import pytest

from ragstack_common.access.tenants import TenantIndexes
from ragstack_common.core.errors import ConfigurationError
from ragstack_common.settings.search import QuerySettings
from tests.ragstack_common.access.tenants.conftest import POLICY


def settings(ids: str) -> QuerySettings:
    return QuerySettings.from_env({"KNOWLEDGE_BASE_ID": "SHARED1234", "TENANT_KNOWLEDGE_BASES": ids})


def test_indexes_know_the_labels_of_their_documents() -> None:
    ids = settings('{"acme": "ACME123456/SOURCE1234", "zenith": "ZENITH1234/SOURCE1234"}')

    indexes = TenantIndexes.of(ids, POLICY)

    assert indexes == TenantIndexes(
        "access",
        frozenset({"public"}),
        {"acme": ("ACME123456", frozenset({"acme", "acme-board"})), "zenith": ("ZENITH1234", frozenset({"zenith"}))},
    )
    assert TenantIndexes.of(settings("{}"), POLICY) is None


def test_tenants_that_the_access_file_lacks_are_rejected() -> None:
    with pytest.raises(ConfigurationError, match="differ by zenith"):
        TenantIndexes.of(settings('{"acme": "ACME123456/SOURCE1234"}'), POLICY)
    with pytest.raises(ConfigurationError, match="differ by acme"):
        TenantIndexes.of(settings('{"acme": "ACME123456/SOURCE1234"}'), None)


@pytest.mark.parametrize("ids", ['{"acme": "ACME123456"}', '{"acme": ["ACME123456", "SOURCE1234"]}', "acme"])
def test_ids_of_another_form_are_rejected(ids: str) -> None:
    with pytest.raises(ConfigurationError, match="TENANT_KNOWLEDGE_BASES"):
        settings(ids)
