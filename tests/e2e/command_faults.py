"""Command workers that go wrong while they load: class, exit, and that no process is left."""

import os
import signal

import programs
from fault_scenario import OPENAI_PROGRAM, REASON, TRACEBACK, FaultScenario
from programs import Berthd

NAME = "program"
LEFT_BEHIND = ("start: spawn 2 ignore-term", "spawn 2 ignore-term session",
               "spawn 2 ignore-term session orphan")


class CommandFaults(FaultScenario):

    def failed(self, *orders: str, more: str = "") -> tuple[Berthd, dict, dict]:
        """The daemon after that load, the event and the record."""
        daemon = self.fault_daemon(self.fault_command(NAME, *orders, more=more)).wait_listening()
        self.fails(daemon, "load", NAME)
        event = self.after_failure(daemon, NAME)
        return daemon, event, self.record(daemon, NAME)

    def test_L7_L27_it_exits_by_itself(self) -> None:
        _, event, record = self.failed("start: exit 4")
        self.assertEqual((record["class"], record["exit_code"]), ("unclassified", 4))
        self.assertEqual(event["exit"], "exit 4")

    def test_L21_L27_it_dies_by_a_signal(self) -> None:
        _, event, record = self.failed("load: signal SEGV")
        self.assertEqual((record["class"], record["signal"]), ("unclassified", "SIGSEGV"))
        self.assertEqual(event["exit"], "SIGSEGV")

    def test_L21_L27_it_is_killed_from_outside(self) -> None:
        reached = self.workspace.path / "reached"
        config = self.fault_command(NAME, f"load: touch {reached}", "stall")
        daemon = self.fault_daemon(config).wait_listening()
        client = self.background(daemon, "load", NAME)
        self.wait_file(reached)
        for pid in programs.descendants(daemon.process.pid):
            if programs.command_line(pid).split()[0].endswith("/fault_worker"):
                os.kill(pid, signal.SIGKILL)
        self.assertEqual(client.wait(), 1)
        event = self.after_failure(daemon, NAME)
        record = self.record(daemon, NAME)
        self.assertEqual((record["class"], record["signal"], event["exit"]),
                         ("unclassified", "SIGKILL", "SIGKILL"))

    def test_L6_L8_health_answers_and_nothing_is_completed(self) -> None:
        _, _, record = self.failed("load: stall", more='load_stall = "3s"\n')
        self.assertEqual((record["class"], record["signal"]), ("stalled", ""))

    def test_L4_L27_descendants_are_left_behind_by_a_load_that_fails(self) -> None:
        _, _, record = self.failed(*LEFT_BEHIND, f"load: print {TRACEBACK}", "stall")
        self.assertEqual((record["class"], record["reason"]), ("permanent", REASON))

    def test_L4_L27_descendants_are_left_behind_by_an_exit(self) -> None:
        _, _, record = self.failed(*LEFT_BEHIND, "load: exit 1")
        self.assertEqual((record["class"], record["exit_code"]), ("unclassified", 1))

    def test_L3_L27_SIGTERM_is_ignored(self) -> None:
        config = self.fault_command(NAME, *LEFT_BEHIND, "ignore-term", "ignore-stdin")
        daemon = self.fault_daemon(config).wait_listening()
        self.succeeds(daemon, "load", NAME)
        self.succeeds(daemon, "unload", NAME)
        self.assertEqual(daemon.wait_event("instance.exited", model=NAME)["exit"], "SIGKILL")
        self.assert_nothing_left(daemon)
        self.assert_no_mark(daemon, NAME)

    def test_L20_L27_an_unload_during_a_load_leaves_no_mark(self) -> None:
        config = self.python_command(NAME, OPENAI_PROGRAM, "--never", "--family")
        daemon = self.fault_daemon(config).wait_listening()
        client = self.background(daemon, "load", NAME)
        daemon.wait_event("load.started", model=NAME)
        self.succeeds(daemon, "unload", NAME, "--force")
        self.assertEqual(client.wait(), 1)
        self.assert_nothing_left(daemon)
        self.assert_no_mark(daemon, NAME)

    def test_L23_another_command_line_lifts_the_failure(self) -> None:
        daemon, _, record = self.failed("start: exit 4")
        self.assertEqual(daemon.stop(), 0)
        daemon = self.fault_daemon(self.fault_command(NAME)).wait_listening()
        lifted = daemon.json("failures", NAME, "--all")["failures"]
        self.assertEqual([(one["id"], one["lifted"]["cause"], one["lifted"]["field"])
                          for one in lifted], [(record["id"], "provenance", "launch")])
        self.succeeds(daemon, "load", NAME)
