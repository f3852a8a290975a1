"""The base of scenarios in which loads go wrong: workers that misbehave on order, and the proof that
nothing of them is left."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable
from unittest import mock

import programs
from programs import DEADLINE, Berthd, Failed
from scenario import Scenario

MODEL = "faulty"
FRAMES = r"""Traceback (most recent call last):\n  File "load.py", line 7, in load\n"""
TRACEBACK = FRAMES + r"ValueError: Model type zebra not supported\n"
CHAIN = r"\nDuring handling of the above exception, another exception occurred:\n\n"
REASON = "ValueError: Model type zebra not supported"

HERE = Path(__file__).resolve().parent
OPENAI_PROGRAM = str(HERE / "openai_program.py")
MLX_LIKE = str(HERE.parent / "fault_worker" / "mlx_like.py")


class FaultScenario(Scenario):

    def script(self, text: str, model: str = MODEL) -> Path:
        """A model whose worker does what the text says (tests/fault_worker/fault_script.h)."""
        file = self.workspace.models / f"{model}.gguf"
        if not file.exists():
            self.workspace.add_model(model)
        orders = Path(f"{file}.fault")
        orders.write_text(text)
        return orders

    def command(self, name: str, *argv: str, more: str = "") -> str:
        """The configuration of a command worker. Its processes have the workspace as directory."""
        return (f'[model.{name}]\nkind = "command"\ncommand = {json.dumps(list(argv))}\n'
                f'directory = "{self.workspace.path}"\n{more}')

    def fault_command(self, name: str, *orders: str, more: str = "") -> str:
        """The fault worker as a command worker."""
        argv = [str(self.build / "bin" / "fault_worker"), "command", "--port", "{port}"]
        for order in orders:
            argv += ["--order", order]
        return self.command(name, *argv, more=more)

    def python_command(self, name: str, program: str, *arguments: str, more: str = "") -> str:
        return self.command(name, sys.executable, "-B", program, "--port", "{port}", *arguments,
                            more=more)

    def fault_daemon(self, config: str | None = None) -> Berthd:
        """A daemon, not yet listening, whose workers are fault workers. Without a configuration it
        takes the one that is there."""
        if config is not None:
            self.workspace.config(config)
        worker = str(self.build / "bin" / "fault_worker")
        with mock.patch.dict(os.environ, {"BERTH_WORKER": worker}):
            return self.berthd()

    def faulty(self, script: str, config: str = "") -> Berthd:
        """A daemon that listens, with the model of this script."""
        self.script(script)
        return self.fault_daemon(config).wait_listening()

    def failed_load(self, script: str, config: str = "") -> tuple[Berthd, str, dict]:
        """The daemon after that load, what its client was told, and the event."""
        daemon = self.faulty(script, config)
        said = self.fails(daemon, "complete", MODEL, "hello")
        return daemon, said, self.after_failure(daemon, MODEL)

    def after_failure(self, daemon: Berthd, model: str) -> dict:
        """The event of a model's failed load, once nothing of its worker is left."""
        event = daemon.wait_event("load.failed", model=model)
        daemon.wait_event("instance.exited", model=model)
        self.assert_nothing_left(daemon)
        self.assertNotIn(str(self.workspace.path), event["reason"])
        return event

    def record(self, daemon: Berthd, model: str = MODEL) -> dict:
        """The failure that stands against the model, by `berth failures` and `berth why`."""
        failures = daemon.json("failures", model)["failures"]
        self.assertEqual(len(failures), 1, failures)
        self.assertEqual(daemon.json("why", model)["standing"]["id"], failures[0]["id"])
        self.assertNotIn(str(self.workspace.path), failures[0]["reason"])
        return failures[0]

    def assert_no_mark(self, daemon: Berthd, model: str = MODEL) -> None:
        self.assertEqual(daemon.json("failures", model, "--all")["failures"], [])

    def assert_stays_refused(self, daemon: Berthd, model: str = MODEL) -> None:
        """Another try is refused without a process, and tells the way out."""
        record = self.record(daemon, model)
        loads = len(daemon.events("load.started"))
        said = self.fails(daemon, "complete", model, "hello")
        for part in (record["class"], record["reason"], record["id"], f"berth why {model}"):
            self.assertIn(part, said)
        self.assertNotIn(str(self.workspace.path), said.splitlines()[0])
        self.assertEqual(len(daemon.events("load.started")), loads)

    def assert_nothing_left(self, daemon: Berthd) -> None:
        """No process, also no zombie and none that left its session, and no instance that is
        charged."""
        self.wait_until(lambda: not self.left(daemon),
                        lambda: f"nothing is left: {self.left(daemon)}")

    def left(self, daemon: Berthd) -> list:
        pids = [*programs.descendants(daemon.process.pid),
                *processes_of(self.workspace.path, daemon.process.pid)]
        return [*((pid, programs.command_line(pid)) for pid in pids),
                *daemon.json("ps").get("instances", [])]

    def wait_until(self, holds: Callable[[], bool], what: Callable[[], str]) -> None:
        """For what nobody tells of: looks until it holds."""
        end = time.monotonic() + DEADLINE
        while not holds():
            if time.monotonic() > end:
                raise Failed(f"not within {DEADLINE:.0f} s: {what()}")
            time.sleep(0.01)  # polls

    def wait_file(self, file: Path, size: int = 0) -> None:
        self.wait_until(lambda: file.exists() and file.stat().st_size >= size,
                        lambda: f"{file} with {size} bytes")

    def wait_all_gone(self) -> None:
        end = time.monotonic() + DEADLINE
        while left := processes_of(self.workspace.path):
            for pid in left:
                programs.wait_gone(pid, max(0.0, end - time.monotonic()))


def processes_of(directory: Path, *but: int) -> list[int]:
    """Processes that live and have this directory in their command line or are in it, besides these
    and those of the test itself."""
    text = str(directory)
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) in (*but, os.getpid()):
            continue
        try:
            parts = (entry / "cmdline").read_bytes().decode(errors="replace")
            place = os.readlink(entry / "cwd")
        except OSError:
            continue  # it has ended meanwhile, or is a zombie
        client = parts.split("\0")[0].endswith("/berth")
        if not client and (text in parts or place == text):
            found.append(int(entry.name))
    return found


def broken_file(build: Path, kind: str, file: Path) -> None:
    subprocess.run([str(build / "bin" / "make_gguf"), "--broken", kind, str(file)], check=True,
                   capture_output=True, timeout=DEADLINE)
