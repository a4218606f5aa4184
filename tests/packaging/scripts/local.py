"""Start the local Bedrock, put a document in and find it."""

import subprocess
import sys
import time
from pathlib import Path

import boto3

from local_bedrock.creation import create_knowledge_base

command = [str(Path(sys.executable).parent / "ragstack"), "bedrock", "--port", "0", "--data-dir", "data"]
with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
    try:
        assert server.stdout is not None
        url = next(word for line in server.stdout for word in line.split() if word.startswith("http://")).rstrip(",.")
        agent = boto3.client("bedrock-agent", endpoint_url=url)
        knowledge_base = create_knowledge_base(agent, "test")
        source = agent.create_data_source(
            knowledgeBaseId=knowledge_base, name="texts", dataSourceConfiguration={"type": "CUSTOM"}
        )["dataSource"]["dataSourceId"]
        page = b"<html><title>Leave</title><body><p>Employees have thirty days of leave.</p></body></html>"
        ids = {"knowledgeBaseId": knowledge_base, "dataSourceId": source}
        agent.ingest_knowledge_base_documents(
            **ids,
            documents=[
                {
                    "content": {
                        "dataSourceType": "CUSTOM",
                        "custom": {
                            "customDocumentIdentifier": {"id": "leave"},
                            "sourceType": "IN_LINE",
                            "inlineContent": {"type": "BYTE", "byteContent": {"mimeType": "text/html", "data": page}},
                        },
                    }
                }
            ],
        )
        status = ""
        while status not in ("INDEXED", "FAILED"):
            time.sleep(0.1)
            answer = agent.get_knowledge_base_documents(
                **ids, documentIdentifiers=[{"dataSourceType": "CUSTOM", "custom": {"id": "leave"}}]
            )
            (detail,) = answer["documentDetails"]
            status = detail["status"]
        assert status == "INDEXED", detail
        runtime = boto3.client("bedrock-agent-runtime", endpoint_url=url)
        found = runtime.retrieve(knowledgeBaseId=knowledge_base, retrievalQuery={"text": "days of leave"})
        assert "thirty days" in found["retrievalResults"][0]["content"]["text"], found
    finally:
        server.terminate()
