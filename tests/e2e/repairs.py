"""What was wrong is put right, while the server runs or while it is stopped: the failure is lifted by
itself, and its record says what moved."""

import shutil
import signal
from pathlib import Path

from fault_scenario import MODEL, OPENAI_PROGRAM, TRACEBACK, FaultScenario
from programs import Berthd

NAME = "program"
BROKEN = "raise ValueError('Model type zebra not supported')\n"
FATAL = f"load: print {TRACEBACK}\nstall"


class Repairs(FaultScenario):

    def broken_script(self) -> Path:
        script = self.workspace.path / "server.py"
        script.write_text(BROKEN)
        return script

    def lifted_field(self, daemon: Berthd, model: str, record: dict) -> str:
        """By which field the failure was lifted."""
        daemon.wait_event("failure.lifted", model=model)
        last = daemon.json("failures", model, "--all")["failures"][0]
        self.assertEqual((last["id"], last["lifted"]["cause"]), (record["id"], "provenance"))
        self.assertEqual(daemon.json("failures", model)["failures"], [])
        print(last["lifted"]["text"])
        return last["lifted"]["field"]

    def test_L23_a_mended_script_of_a_command(self) -> None:
        script = self.broken_script()
        daemon = self.fault_daemon(self.python_command(NAME, str(script))).wait_listening()
        self.fails(daemon, "load", NAME)
        record = self.record(daemon, NAME)
        self.assertIn("its program", daemon.json("why", NAME)["standing"]["way_out"])
        shutil.copyfile(OPENAI_PROGRAM, script)
        self.assertEqual(self.lifted_field(daemon, NAME, record), "program")
        self.succeeds(daemon, "load", NAME)

    def test_L19_L23_a_script_that_is_mended_while_the_server_is_stopped(self) -> None:
        script = self.broken_script()
        daemon = self.fault_daemon(self.python_command(NAME, str(script))).wait_listening()
        self.fails(daemon, "load", NAME)
        record = self.record(daemon, NAME)
        self.assertEqual(daemon.stop(), 0)
        daemon = self.fault_daemon().wait_listening()
        self.assertEqual(self.record(daemon, NAME)["id"], record["id"], "nothing moved")
        self.assertEqual(daemon.stop(), 0)
        shutil.copyfile(OPENAI_PROGRAM, script)
        daemon = self.fault_daemon().wait_listening()
        self.assertEqual(self.lifted_field(daemon, NAME, record), "program")

    def test_L23_a_program_that_comes(self) -> None:
        program = self.workspace.path / "serve"
        daemon = self.fault_daemon(self.command(NAME, str(program), "{port}")).wait_listening()
        self.fails(daemon, "load", NAME)
        record = self.record(daemon, NAME)
        self.assertEqual(record["class"], "launch")
        partial = self.workspace.path / "partial"
        partial.write_text("#!/bin/sh\nexit 3\n")
        partial.chmod(0o700)
        partial.rename(program)
        self.assertEqual(self.lifted_field(daemon, NAME, record), "program")

    def test_L23_a_command_that_is_corrected_in_the_configuration(self) -> None:
        daemon = self.fault_daemon(self.command(NAME, "no-such-runtime", "{port}"))
        daemon.wait_listening()
        self.fails(daemon, "load", NAME)
        record = self.record(daemon, NAME)
        self.workspace.config(self.python_command(NAME, OPENAI_PROGRAM))
        daemon.process.send_signal(signal.SIGHUP)
        self.assertEqual(self.lifted_field(daemon, NAME, record), "launch")
        self.succeeds(daemon, "load", NAME)

    def test_L23_a_window_that_is_corrected_in_the_configuration(self) -> None:
        daemon = self.faulty(FATAL, f"[model.{MODEL}]\ncontext = 4096\n")
        self.fails(daemon, "complete", MODEL, "hello")
        record = self.record(daemon)
        self.script("")
        self.workspace.config(f"[model.{MODEL}]\ncontext = 64\n")
        daemon.process.send_signal(signal.SIGHUP)
        self.assertEqual(self.lifted_field(daemon, MODEL, record), "window")
        self.succeeds(daemon, "complete", MODEL, "hello")

    def test_L23_a_wrong_file_changes_nothing_and_is_told(self) -> None:
        daemon = self.faulty("", '[server]\ndrain_timeout = "20s"\n')
        self.workspace.config(f"[model.{MODEL}]\nsequences = 0\n")
        daemon.process.send_signal(signal.SIGHUP)
        event = daemon.wait_event("server.degraded", part="config")
        self.assertIn("sequences", event["problem"])
        self.succeeds(daemon, "complete", MODEL, "hello")
        seen = len(daemon.events("server.degraded"))
        self.workspace.config('[server]\ndrain_timeout = "7s"\n')
        daemon.process.send_signal(signal.SIGHUP)
        daemon.output.wait_for(lambda line: "server.drain_timeout" in line, "what takes a restart")
        self.assertGreater(len(daemon.events("server.degraded")), seen)
        settings = {one["key"]: one for one in daemon.json("config", "show")["settings"]}
        self.assertIn("20", settings["server.drain_timeout"]["value"])
