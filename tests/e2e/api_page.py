"""docs/api.md: every example of the page does what the page says, against a real berthd."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

import clients
import programs
from programs import DEADLINE
from scenario import Scenario

PAGE = Path(__file__).resolve().parents[2] / "docs" / "api.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Example(NamedTuple):
    line: int  # of the page, where the block begins
    language: str
    text: str


def examples(*languages: str) -> list[Example]:
    page = PAGE.read_text()
    return [Example(page.count("\n", 0, block.start()) + 1, block[1], block[2])
            for block in FENCE.finditer(page) if block[1] in languages]


def error_in(output: str) -> str:
    """The first line that is JSON with an `error`, also as the data of an event; else nothing."""
    for line in [output, *output.splitlines()]:
        try:
            said = json.loads(line.removeprefix("data: "))
        except ValueError:
            continue
        if isinstance(said, dict) and "error" in said:
            return line
    return ""


class ApiPageScenario(Scenario):

    def environment(self) -> dict[str, str]:
        """That of the page's examples: two models, a key of an admin, and berth on the PATH."""
        keys = str(self.workspace.path / "keys")
        made = programs.run_berth(self.build, "keys", "add", "ada", "--role", "admin",
                                  "--keys-file", keys)
        self.assertEqual(made.returncode, 0, made.stderr.decode())
        self.make_model("embed", "--architecture", "bert", "--pooling", "mean")
        daemon = self.serve('[auth]\nkeys_file = "keys"\n')
        return programs.clean_environment() | {
            "BERTH_URL": f"http://{daemon.http}", "BERTH_ENDPOINT": daemon.grpc,
            "BERTH_KEY": made.stdout.decode().strip(), "MODEL": "demo", "EMBEDDING_MODEL": "embed",
            "PATH": f"{self.build / 'bin'}:{os.environ['PATH']}"}

    def runs(self, example: Example, command: list[str], environment: dict[str, str]) -> None:
        with self.subTest(line=example.line, example=example.text):
            done = subprocess.run(command, env=environment, capture_output=True, text=True,
                                  stdin=subprocess.DEVNULL, timeout=DEADLINE, check=False)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertTrue(done.stdout.strip(), "it answered nothing")
            self.assertEqual(error_in(done.stdout), "")

    def test_an_answer_with_an_error_is_seen(self) -> None:
        self.assertTrue(error_in('{"error": {"message": "no"}}'))
        self.assertTrue(error_in('data: {"choices": []}\n\ndata: {"error": {}}\n'))
        self.assertTrue(error_in('{\n  "error": {}\n}'))
        self.assertFalse(error_in('data: {"choices": []}\n\ndata: [DONE]\n'))

    def test_shell_examples_work(self) -> None:
        found = examples("sh")
        self.assertTrue(any("/v1/embeddings" in example.text for example in found))
        self.assertTrue(any("berth complete" in example.text for example in found))
        environment = self.environment()
        for example in found:
            self.runs(example, ["bash", "-euo", "pipefail", "-c", example.text], environment)

    def test_node_examples_work(self) -> None:
        if clients.why_not():
            self.skipTest(clients.why_not())
        found = examples("js")
        self.assertTrue(found)
        environment = self.environment()
        # Packages are looked for beside the program.
        (self.workspace.path / "node_modules").symlink_to(clients.CLIENTS / "node_modules")
        program = self.workspace.path / "example.mjs"
        for example in found:
            program.write_text(example.text)
            self.runs(example, ["node", str(program)], environment)

    def test_python_examples_compile(self) -> None:
        found = examples("python")
        self.assertTrue(found)
        for example in found:
            with self.subTest(line=example.line):
                compile(example.text, f"{PAGE.name}:{example.line}", "exec", dont_inherit=True)
        # What they need beyond Python may be missing on this machine.
        try:
            import openai  # noqa: F401
        except ImportError:
            return
        environment = self.environment()
        for example in found:
            self.runs(example, ["python3", "-B", "-c", example.text], environment)
