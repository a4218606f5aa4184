"""Fill a Milvus Lite file and search it."""

import asyncio

from ragstack_common.search.engines.milvus.backend import MilvusBackend
from ragstack_common.search.engines.milvus.collection import MilvusDocument


async def main() -> None:
    async with MilvusBackend("handbook.db", "handbook", timeout_seconds=60) as backend:
        await backend.create()
        await backend.add(
            [
                MilvusDocument("leave", "Employees have thirty days of leave.", "leave.md", {"year": 2026}),
                MilvusDocument("lunch", "Lunch is at noon.", "lunch.md", {"year": 2020}),
            ]
        )
        found = await backend.retrieve("days of leave", top_k=2, filters={"year": {"$gte": 2025}})
        assert [chunk.source for chunk in found] == ["leave.md"], found


asyncio.run(main())
