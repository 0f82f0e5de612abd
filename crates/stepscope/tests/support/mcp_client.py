"""Asks `stepscope mcp` with the official Python client and prints what it heard as JSON.

Usage: mcp_client.py MODE STEPSCOPE FOLDER, where MODE is `session` (the client's older class, which opens with a
handshake), `legacy`, `auto` or a version of the protocol.
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client import Client
from mcp.client.stdio import stdio_client


async def converse(ask, tools, read):
    listed = [tool.name for tool in (await tools()).tools]
    profiles = await ask("list_profiles", {"under": "tf-input-bound"})
    path = profiles.structured_content["rows"][0]["path"]
    report = await ask("report", {"path": path})
    finding = await ask("finding", {"path": path, "id": "input-bound"})
    ops = await ask("view", {"path": path, "name": "ops", "top": 2})
    rows = await ask("sql", {"path": path, "query": "SELECT count(*) AS events FROM event"})
    same = await ask("compare", {"before": path, "after": path})
    wrong = await ask("report", {"path": "/etc/passwd"})
    resource = await read("stepscope://findings/input-bound")
    return {
        "tools": listed,
        "path": path,
        "report": report.content[0].text,
        "median_ms": report.structured_content["steps"]["median_ms"],
        "finding": finding.content[0].text,
        "ops": len(ops.structured_content["rows"]),
        "more": ops.structured_content["next_cursor"],
        "events": rows.structured_content["rows"][0]["events"],
        "compare": same.structured_content["verdict"],
        "wrong": wrong.is_error,
        "resource": resource.contents[0].text,
    }


async def main(mode, program, folder):
    server = StdioServerParameters(command=program, args=["mcp", folder])
    if mode == "session":
        async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
            opened = await session.initialize()
            heard = await converse(session.call_tool, session.list_tools, session.read_resource)
            heard["version"] = opened.protocol_version
    else:
        async with Client(stdio_client(server), mode=mode) as client:
            heard = await converse(client.call_tool, client.list_tools, client.read_resource)
            heard["version"] = client.protocol_version
    print(json.dumps(heard))


asyncio.run(main(*sys.argv[1:]))
