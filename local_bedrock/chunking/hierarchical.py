"""Small chunks to search in, inside large ones to return."""

from dataclasses import dataclass

from local_bedrock.chunking.fixed_size import packed
from local_bedrock.chunking.pieces import Chunk, Embed, Pieces, trimmed
from local_bedrock.chunking.sentences import units


@dataclass(frozen=True)
class Hierarchical:
    """Two layers, each with sentences kept whole as far as they fit into a child.

    Attributes:
        parent_tokens: Of a parent at most.
        child_tokens: Of a child at most; no more than ``parent_tokens``.
        overlap_tokens: Repeated at most from one chunk to the next of the same layer.
    """

    parent_tokens: int
    child_tokens: int
    overlap_tokens: int

    def cut(self, text: str, _embed: Embed) -> Pieces:
        """As :class:`Strategy`; every chunk lies inside its parent."""
        parts = units(text, self.child_tokens)
        parents: list[Chunk] = []
        children: list[Chunk] = []
        for first, last in packed(parts, self.parent_tokens, self.overlap_tokens):
            parent = trimmed(text, [(parts[first].start, parts[last].end)])
            if parent:
                inside = parts[first : last + 1]
                spans = packed(inside, self.child_tokens, self.overlap_tokens)
                children += trimmed(text, ((inside[a].start, inside[b].end) for a, b in spans), len(parents))
                parents += parent
        return Pieces(tuple(children), tuple(parents))
