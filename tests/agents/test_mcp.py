"""The server for agents, asked by the official SDK of the Model Context Protocol."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.agents.common import ROOT, environment, program

YAML = """model_name_or_path: Qwen/Qwen2.5-VL-3B-Instruct
stage: sft
finetuning_type: lora
cutoff_len: 1024
bf16: true
"""


class McpTest(unittest.IsolatedAsyncioTestCase):
    """What an agent is told."""

    @asynccontextmanager
    async def session(self, *words: str) -> AsyncIterator[ClientSession]:
        """A session with a server of its own."""
        with tempfile.TemporaryDirectory() as home:
            server = StdioServerParameters(command=program(), args=["mcp", *words], env=environment(home))
            async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
                await session.initialize()
                yield session

    async def call(self, session: ClientSession, tool: str, **arguments: Any) -> dict[str, Any]:
        """The answer of a tool that has one."""
        result = await session.call_tool(tool, arguments)
        self.assertFalse(result.is_error, result.content)
        return result.structured_content

    async def test_the_tools_say_what_they_take(self) -> None:
        """Each argument has a description, and a dry run is marked as what it is."""
        async with self.session() as session:
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
        self.assertEqual(set(tools), {"estimate", "max", "diagnose", "dry_run"})
        for name, tool in tools.items():
            self.assertGreater(len(tool.description), 40, name)
            for key, schema in tool.input_schema["properties"].items():
                self.assertIn("description", schema, f"{name}.{key}")
        self.assertTrue(tools["estimate"].annotations.read_only_hint)
        self.assertFalse(tools["dry_run"].annotations.read_only_hint)
        async with self.session("--no-dry-run") as session:
            self.assertNotIn("dry_run", {tool.name for tool in (await session.list_tools()).tools})

    async def test_an_estimate_is_the_commands(self) -> None:
        """The bytes are those of the command line; details come when asked for."""
        settings = {"batch": 2, "seq": 256, "freeze": "none"}
        async with self.session() as session:
            answer = await self.call(session, "estimate", run="gpt2", gpu="H100", settings=settings)
            whole = await self.call(session, "estimate", run="gpt2", gpu="H100", settings=settings, detail=True)
            launched = await self.call(session, "estimate", launch=YAML, gpu="4090")
            refused = await session.call_tool("estimate", {"run": "gpt2", "gpu": "no such card"})
            wrong = await session.call_tool("estimate", {"run": "gpt2", "settings": {"bathc": 2}})
            hub = await session.call_tool("estimate", {"run": "nobody/no-such-model-at-all"})
        sys.path.insert(0, os.path.join(ROOT, "src", "recorder"))
        os.environ["PATH"] = os.path.dirname(program()) + os.pathsep + os.environ["PATH"]
        import vramscope

        expected = vramscope.estimate("gpt2", batch=2, seq=256, freeze="none", gpu="H100")
        self.assertEqual(answer["peak_allocated"], expected["peak_allocated"])
        self.assertEqual((answer["target"]["verdict"], answer["exit_code"]), ("fits", 0))
        self.assertNotIn("breakdown", answer)
        self.assertEqual(whole["breakdown"], expected["breakdown"])
        self.assertEqual(launched["grade"], "between")
        for result, words in [(refused, "no such card"), (wrong, "bathc"), (hub, "nobody/no-such-model-at-all")]:
            self.assertTrue(result.is_error)
            self.assertIn(words, result.content[0].text)

    async def test_the_largest_batch_and_a_diagnosis(self) -> None:
        """The other two that need no Python."""
        error = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of "
        error += "23.64 GiB of which 1.00 GiB is free."
        async with self.session() as session:
            largest = await self.call(session, "max", run="gpt2", limit_gib=8, settings={"seq": 512})
            found = await self.call(session, "diagnose", text=error)
            none = await session.call_tool("diagnose", {})
        self.assertGreater(largest["max_batch"], 1)
        self.assertTrue(any("2.00 GiB" in str(finding) for finding in found["findings"]), found["findings"])
        self.assertTrue(none.is_error)

    async def test_a_dry_run_needs_a_python_and_says_so(self) -> None:
        """This environment has no PyTorch, which is the answer; packages are not fetched unasked."""
        async with self.session() as session:
            ran = await session.call_tool(
                "dry_run", {"command": ["python", "-c", "import torch"], "python": sys.executable, "gpu": "H100"}
            )
            fetched = await session.call_tool("dry_run", {"command": ["trl", "sft"], "with": ["trl"]})
        self.assertTrue(ran.is_error)
        self.assertIn("PyTorch", ran.content[0].text)
        self.assertIn("--allow-network", fetched.content[0].text)


if __name__ == "__main__":
    unittest.main()
