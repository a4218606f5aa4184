"""How many searchable documents have which attribute."""

from itertools import groupby

from ragstack_common.api.documents.failures import reaching_the_registry
from ragstack_common.api.documents.models import Facet, Facets, FacetValue
from ragstack_common.registry.catalogue import Catalogue
from ragstack_common.retrieval.values import natural_order


def facets_of(catalogue: Catalogue, key: str | None) -> Facets:
    """List the attributes with their values, or one of them.

    Args:
        catalogue: The counts.
        key: The attribute; None for all.

    Raises:
        RegistryError: The registry cannot be read.
    """
    with reaching_the_registry():
        found = catalogue.facets(key)
        documents = catalogue.documents()
    facets = []
    for name, of_name in groupby(found, key=lambda facet: facet.key):
        values = [(facet.value, facet.documents) for facet in of_name if facet.value is not None]
        values.sort(key=lambda counted: natural_order(counted[0]))
        facets.append(Facet(key=name, values=[FacetValue(value=value, documents=many) for value, many in values]))
    return Facets(facets=facets, documents=documents)
