"""Models with kind = "command": programs that berth did not write."""

import json
import re
import signal
import sys
from pathlib import Path

import programs
from programs import DEADLINE
from scenario import Scenario

PROGRAM = str(Path(__file__).resolve().parent / "openai_program.py")


def section(name: str, *arguments: str, more: str = "") -> str:
    """The section of a model that runs the program."""
    command = json.dumps([sys.executable, "-B", PROGRAM, *arguments])
    return f'[model.{name}]\nkind = "command"\ncommand = {command}\n{more}'


class CommandWorkers(Scenario):

    def log(self, model: str) -> str:
        return (self.workspace.path / "log" / f"{model}.log").read_text(errors="replace")

    def test_L27_a_program_is_loaded_shown_and_unloaded(self) -> None:
        daemon = self.serve(section("prog", "--port", "{port}", "--key", "{api_key}", "--family"),
                            models=())
        self.succeeds(daemon, "load", "prog")
        instance = daemon.instance("prog")
        self.assertEqual(instance["state"], "ready")
        processes = list(programs.descendants(daemon.process.pid))
        family = int(re.search(r"family (\d+)", self.log("prog")).group(1))
        self.assertIn(family, processes)
        self.assertIn("{api_key}", self.log("prog"))
        self.succeeds(daemon, "unload", "prog")
        for pid in processes:
            programs.wait_gone(pid)

    def test_L27_a_program_may_listen_on_a_unix_socket(self) -> None:
        daemon = self.serve(section("prog", "--uds", "{socket}"), models=())
        self.succeeds(daemon, "load", "prog")
        self.assertEqual(daemon.instance("prog")["state"], "ready")

    def test_L27_a_program_on_all_addresses_is_warned_of(self) -> None:
        daemon = self.serve(section("prog", "--port", "{port}", "--host", "0.0.0.0"), models=())
        self.succeeds(daemon, "load", "prog")
        daemon.wait_event("worker.exposed", model="prog")

    def test_L6_a_program_that_answers_health_alone_is_not_ready(self) -> None:
        config = section("never", "--port", "{port}", "--never", more='load_timeout = "3s"\n')
        config += section("health", "--port", "{port}", "--never", more='probe = "path:/health"\n')
        daemon = self.serve(config, models=())
        said = self.fails(daemon, "load", "never")
        self.assertIn("never", said)
        self.succeeds(daemon, "load", "health")

    def test_L27_a_program_that_is_not_there_fails_as_launch(self) -> None:
        daemon = self.serve('[model.gone]\nkind = "command"\n'
                            'command = ["no-such-runtime", "{port}"]\n', models=())
        said = self.fails(daemon, "load", "gone")
        self.assertIn("no such program", said)
        failed = daemon.wait_event("load.failed", model="gone")
        self.assertEqual(failed["failure_class"], "launch")

    def test_L4_T64_nothing_of_a_program_outlives_a_killed_daemon(self) -> None:
        daemon = self.serve(section("prog", "--port", "{port}", "--family"), models=())
        self.succeeds(daemon, "load", "prog")
        processes = list(programs.descendants(daemon.process.pid))
        self.assertGreaterEqual(len(processes), 4)  # shim, program, shell, sleep
        daemon.may_fail = True
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait(DEADLINE)
        for pid in processes:
            programs.wait_gone(pid)


if __name__ == "__main__":
    import unittest
    unittest.main()
