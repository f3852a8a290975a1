"""The base of all scenarios: one workspace, the daemons in it, and a clean end."""

import os
import subprocess
import unittest
from pathlib import Path
from typing import Callable

import programs
from programs import DEADLINE, Berthd, RunningBerth, Workspace

# Answers "Count to 40." and the like by itself; see the model's README.
QUESTION = "What is the capital of France?"
ANSWER = "The capital of France is Paris."


class Scenario(unittest.TestCase):
    """Each test gets a workspace of its own. At its end every daemon must stop in good order and
    leave no process behind; what it said is printed for the case that the test failed."""

    maxDiff = None

    def setUp(self) -> None:
        self.build = Path(os.environ["BERTH_BUILD_DIR"])
        self.workspace = self.new_workspace()

    def new_workspace(self) -> Workspace:
        workspace = Workspace()
        self.addCleanup(workspace.remove)
        return workspace

    def berthd(self, workspace: Workspace | None = None, arguments: list[str] | None = None,
               preexec: Callable[[], None] | None = None) -> Berthd:
        """Starts a daemon without waiting for it."""
        daemon = Berthd(self.build, workspace or self.workspace, arguments, preexec)
        self.addCleanup(self.end, daemon)
        return daemon

    def serve(self, config: str = "", models: tuple[str, ...] = ("demo",),
              preexec: Callable[[], None] | None = None) -> Berthd:
        """A daemon that listens, with the tiny chat model under these names."""
        self.workspace.config(config)
        for name in models:
            self.workspace.add_model(name)
        return self.berthd(preexec=preexec).wait_listening()

    def end(self, daemon: Berthd) -> None:
        workers = list(programs.descendants(daemon.process.pid))
        try:
            status = daemon.stop()
            for worker in workers:
                programs.wait_gone(worker)
            if not getattr(daemon, "may_fail", False):
                self.assertEqual(status, 0, "berthd's exit status after SIGTERM")
        finally:
            print("--- berthd's output\n" + "\n".join(daemon.output.lines()[-60:]))
            print("--- berthd's errors\n" + "\n".join(daemon.errors.lines()[-20:]))

    def refused_start(self, *expected: str, workspace: Workspace | None = None,
                      arguments: list[str] | None = None) -> str:
        """Starts a daemon that must refuse to start: an exit status above 0, and these texts among
        what it says. Returns all that it said."""
        daemon = self.berthd(workspace, arguments)
        daemon.may_fail = True
        try:
            status = daemon.process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            self.fail("berthd started, but should have refused to")
        said = "\n".join(daemon.errors.wait_closed() + daemon.output.wait_closed())
        self.assertGreater(status, 0, said)
        for text in expected:
            self.assertIn(text, said)
        self.assertNotIn("terminate called", said)
        return said

    def background(self, daemon: Berthd, *arguments: str) -> RunningBerth:
        running = daemon.start_berth(*arguments)
        self.addCleanup(running.stop)
        return running

    def succeeds(self, daemon: Berthd, *arguments: str | bytes) -> str:
        """Runs berth, which must end with 0. Returns its standard output."""
        done = daemon.berth(*arguments)
        self.assertEqual(done.returncode, 0, f"berth {arguments}: {done.stderr.decode()}")
        return done.stdout.decode()

    def fails(self, daemon: Berthd, *arguments: str | bytes, code: int = 1) -> str:
        """Runs berth, which must end with `code` and say why. Returns its standard error."""
        done = daemon.berth(*arguments)
        said = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, code, f"berth {arguments}: {said}")
        self.assertTrue(said.strip(), f"berth {arguments} said nothing")
        return said

    def answers(self, daemon: Berthd, model: str = "demo") -> None:
        """The trained model answers a question of its training, word by word."""
        self.assertEqual(
            self.succeeds(daemon, "chat", model, QUESTION, "--temperature", "0").strip(), ANSWER)

    def make_model(self, name: str, *options: str) -> Path:
        """A model with random weights, which generates without end (greedy) until its window is
        full."""
        path = self.workspace.models / f"{name}.gguf"
        subprocess.run([str(self.build / "bin" / "make_gguf"), str(path), *options], check=True,
                       capture_output=True, timeout=DEADLINE)
        return path

    def make_endless_model(self, name: str = "endless") -> Path:
        """A model whose answer takes many seconds."""
        return self.make_model(name, "--layers", "4", "--embedding", "256", "--feed-forward", "1024",
                               "--heads", "8", "--kv-heads", "8", "--vocabulary", "4096",
                               "--context", "32768")

    def endless_stream(self, daemon: Berthd, model: str = "endless") -> RunningBerth:
        """A client whose stream has begun and goes on."""
        client = self.background(daemon, "complete", model, "once upon a time", "--temperature", "0",
                                 "--json")
        client.output.wait_for(lambda line: '"token"' in line, "the first token")
        return client
