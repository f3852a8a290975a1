"""Loads whose log tells that they cannot succeed, with a worker that misbehaves on order."""

import os
from unittest import mock

import programs
from programs import Berthd
from scenario import Scenario

FRAMES = r"""Traceback (most recent call last):\n  File "load.py", line 7, in load\n"""
TRACEBACK = FRAMES + r"ValueError: Model type zebra not supported\n"
CHAIN = r"\nDuring handling of the above exception, another exception occurred:\n\n"
REASON = "ValueError: Model type zebra not supported"


class FatalLines(Scenario):

    def faulty(self, script: str) -> Berthd:
        """A daemon whose worker does what the script says."""
        worker = str(self.build / "bin" / "fault_worker")
        with mock.patch.dict(os.environ, {"BERTH_WORKER": worker}):
            self.workspace.add_model("faulty")
            (self.workspace.models / "faulty.gguf.fault").write_text(script)
            return self.serve(models=())

    def failed_load(self, script: str) -> tuple[Berthd, str, dict]:
        """The daemon after that load, what its client was told, and the event."""
        daemon = self.faulty(script)
        said = self.fails(daemon, "complete", "faulty", "hello")
        event = daemon.wait_event("load.failed", model="faulty")
        programs.wait_gone(daemon.events("load.started")[0]["pid"])
        daemon.wait_event("instance.exited", model="faulty")
        self.assertEqual(list(programs.descendants(daemon.process.pid)), [])
        self.assertEqual(daemon.json("ps").get("instances", []), [])
        return daemon, said, event

    def test_L7_a_traceback_and_then_silence(self) -> None:
        daemon, said, event = self.failed_load(f"load: print {TRACEBACK}\nstall")
        self.assertIn(REASON, said)
        self.assertEqual((event["failure_class"], event["reason"], event.get("exit", "")),
                         ("permanent", REASON, ""), "our signal is no cause of death (L20)")
        self.assertIn(REASON, self.fails(daemon, "complete", "faulty", "hello"))
        self.assertEqual(len(daemon.events("load.started")), 1, "it is remembered")

    def test_L7_before_the_worker_listens(self) -> None:
        _, said, event = self.failed_load(f"start: print {TRACEBACK}\nstall")
        self.assertIn(REASON, said)
        self.assertEqual(event["failure_class"], "permanent")

    def test_L21_the_line_before_a_crash_gives_its_class(self) -> None:
        _, _, event = self.failed_load(
            "load: print GGML_ASSERT(n_tokens > 0) failed\\n\nsignal ABRT")
        self.assertEqual(event["failure_class"], "crash")
        self.assertIn("GGML_ASSERT(n_tokens > 0) failed", event["reason"])

    def test_L21_a_crash_without_a_line_is_unclassified(self) -> None:
        _, _, event = self.failed_load("load: signal SEGV")
        self.assertEqual((event["failure_class"], event["exit"]), ("unclassified", "SIGSEGV"))

    def test_D2_a_flood_hides_no_verdict(self) -> None:
        _, said, event = self.failed_load(
            f"load: flood 32MiB\nprint {TRACEBACK}\n& flood 8MiB\nstall")
        self.assertIn(REASON, said)
        self.assertEqual(event["failure_class"], "permanent")

    def test_L13_a_traceback_that_was_survived(self) -> None:
        daemon = self.faulty(f"load: print {TRACEBACK}{CHAIN}{FRAMES}ConnectionResetError: peer\\n")
        self.assertIn("fault worker", self.succeeds(daemon, "complete", "faulty", "hello"))

    def test_L15_after_ready_a_line_is_no_verdict(self) -> None:
        daemon = self.faulty(f"request: print {TRACEBACK}")
        for _ in range(2):
            self.assertIn("fault worker", self.succeeds(daemon, "complete", "faulty", "hello"))
        self.assertEqual(len(daemon.events("load.started")), 1)
        self.assertEqual(daemon.events("load.failed"), [])
