"""Passes calls on to the official Python client: one JSON object on each line, in and out."""

import asyncio
import json
import sys

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


def connect(mode, kind, *rest):
    if kind == "stdio":
        home, folder, command, *args = rest
        env = {"CAIRN_HOME": home, "HOME": folder}
        server = StdioServerParameters(command=command, args=args, env=env, cwd=folder)
    else:
        url, token = rest
        http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, trust_env=False)
        server = streamable_http_client(url, http_client=http)
    return Client(server, mode=mode)


def say(value):
    print(json.dumps(value), flush=True)


async def main():
    async with connect(*sys.argv[1:]) as client:
        tools = await client.list_tools()
        say({"version": client.protocol_version, "tools": [tool.name for tool in tools.tools]})
        while line := await asyncio.to_thread(sys.stdin.readline):
            asked = json.loads(line)
            result = await client.call_tool(asked["tool"], asked["arguments"])
            say(
                {
                    "isError": bool(result.is_error),
                    "structuredContent": result.structured_content,
                    "content": [{"text": item.text} for item in result.content],
                }
            )


asyncio.run(main())
