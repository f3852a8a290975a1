"""Each way in which a worker goes wrong while it loads (L28): the class, the reason and the exit that
are told, and that nothing of it is left."""

import os
import signal

import programs
from fault_scenario import FRAMES, MODEL, REASON, TRACEBACK, FaultScenario
from programs import Berthd

STALLS_SOON = '[defaults]\nload_stall = "2s"\n'
FLOOD = 100 << 20
# Far above what berthd needs, far below the flood.
MOST_GROWTH_KIB = 64 << 10


class Misbehaviour(FaultScenario):

    def evidence(self, daemon: Berthd, event: dict) -> tuple[str, str, int | None, str]:
        """Class and reason, exit status and signal of the record; the event says the same."""
        record = self.record(daemon)
        self.assertEqual((event["record"], event["failure_class"]), (record["id"], record["class"]))
        self.assertIn(record["reason"], event["reason"])
        return record["class"], record["reason"], record.get("exit_code"), record["signal"]

    def test_L7_T11_exit_1_at_once(self) -> None:
        daemon, said, event = self.failed_load("start: exit 1")
        failure, reason, code, by = self.evidence(daemon, event)
        self.assertEqual((failure, code, by), ("unclassified", 1, ""))
        self.assertEqual(event["exit"], "exit 1")
        self.assertEqual((event["reason"], reason), ("exit 1", ""))
        self.assertIn("exit 1", said)
        self.assert_stays_refused(daemon)

    def test_L7_exit_1_after_two_seconds(self) -> None:
        daemon, said, event = self.failed_load("load: progress weights 0.3\nsleep 2s\nexit 1")
        failure, reason, code, by = self.evidence(daemon, event)
        self.assertEqual((failure, code, by), ("unclassified", 1, ""))
        self.assertIn("exit 1", said)

    def test_L21_a_line_and_exit_1(self) -> None:
        daemon, _, event = self.failed_load(f"start: print {TRACEBACK}\nexit 1")
        failure, reason, _, _ = self.evidence(daemon, event)
        self.assertEqual((failure, reason), ("permanent", REASON))

    def test_L21_a_fault_of_memory(self) -> None:
        daemon, _, event = self.failed_load("load: progress weights 0.3\nsignal SEGV")
        failure, _, code, by = self.evidence(daemon, event)
        self.assertEqual((failure, code, by), ("unclassified", None, "SIGSEGV"))
        self.assertFalse(self.record(daemon)["outlives_restart"])

    def test_L21_a_kill_from_outside(self) -> None:
        reached = self.workspace.path / "reached"
        daemon = self.faulty(f"load: progress weights 0.3\ntouch {reached}\nstall")
        client = self.background(daemon, "complete", MODEL, "hello")
        started = daemon.wait_event("load.started", model=MODEL)
        self.wait_file(reached)
        os.kill(started["pid"], signal.SIGKILL)
        self.assertEqual(client.wait(), 1)
        event = self.after_failure(daemon, MODEL)
        failure, _, code, by = self.evidence(daemon, event)
        self.assertEqual((failure, code, by), ("unclassified", None, "SIGKILL"),
                         "never oom by SIGKILL alone (L9)")
        self.assert_stays_refused(daemon)

    def test_L8_T4_endless_silence(self) -> None:
        daemon, said, event = self.failed_load("load: progress weights 0.3\nstall", STALLS_SOON)
        failure, reason, code, by = self.evidence(daemon, event)
        self.assertEqual((failure, code, by), ("stalled", None, ""), "our SIGKILL is no cause (L20)")
        self.assertIn(reason, said)
        self.assertFalse(self.record(daemon)["outlives_restart"])

    def test_L8_silence_before_it_listens(self) -> None:
        daemon, _, event = self.failed_load("start: stall", STALLS_SOON)
        self.assertEqual(self.evidence(daemon, event)[0], "stalled")

    def test_L8_it_beats_and_is_never_ready(self) -> None:
        daemon, _, event = self.failed_load("load: heartbeats on\nstall", STALLS_SOON)
        self.assertEqual(self.evidence(daemon, event)[0], "stalled")

    def test_L7_activity_without_end_meets_the_cap(self) -> None:
        daemon, _, event = self.failed_load("load: burn 60 10m",
                                            '[defaults]\nload_timeout = "3s"\n')
        self.assertEqual(self.evidence(daemon, event)[0], "timeout")

    def test_L8_T5_slow_but_steady_reading_is_no_failure(self) -> None:
        daemon = self.faulty("load: progress weights 0.1\nread 1MiB 9s", STALLS_SOON)
        self.assertIn("fault worker", self.succeeds(daemon, "complete", MODEL, "hello"))
        self.assertEqual(daemon.events("load.failed"), [])
        self.assert_no_mark(daemon)

    def test_L13_a_traceback_that_the_worker_survives(self) -> None:
        daemon = self.faulty(f"load: print {FRAMES}BrokenPipeError: [Errno 32] Broken pipe\\n")
        self.assertIn("fault worker", self.succeeds(daemon, "complete", MODEL, "hello"))
        self.assert_no_mark(daemon)

    def test_L10_a_flood_of_100_MiB(self) -> None:
        done = self.workspace.path / "go"
        daemon = self.faulty(f"load: flood {FLOOD}B\nwait {done}\nprint {TRACEBACK}\nstall")
        before = resident_kib(daemon.process.pid)
        client = self.background(daemon, "complete", MODEL, "hello")
        daemon.wait_event("load.started", model=MODEL)
        log = self.workspace.path / "log" / f"{MODEL}.log"
        self.wait_file(log)
        while log.stat().st_size < FLOOD:
            self.assertIn(daemon.instance(MODEL)["state"], ("starting", "loading"))
            self.succeeds(daemon, "logs", MODEL, "--lines", "1")
        done.touch()
        self.assertEqual(client.wait(), 1)
        event = self.after_failure(daemon, MODEL)
        self.assertEqual(self.evidence(daemon, event)[:2], ("permanent", REASON))
        self.assertLess(peak_kib(daemon.process.pid), before + MOST_GROWTH_KIB)
        self.assertLessEqual(log.stat().st_size, 256 << 20)
        self.assertLess(len(self.succeeds(daemon, "logs", MODEL)), 1 << 20)
        self.assertLess(len(str(self.record(daemon)["log_tail"])), 64 << 10)

    def test_L3_a_loading_worker_that_ignores_SIGTERM(self) -> None:
        daemon, _, event = self.failed_load(f"start: ignore-term\nignore-stdin\nprint {TRACEBACK}\n"
                                            "stall")
        self.assertEqual(self.evidence(daemon, event)[:2], ("permanent", REASON))

    def test_L3_a_ready_worker_that_ignores_SIGTERM_is_killed(self) -> None:
        daemon = self.faulty("start: ignore-term\nignore-stdin\nspawn 2 ignore-term")
        self.succeeds(daemon, "load", MODEL)
        self.succeeds(daemon, "unload", MODEL)
        self.assertEqual(daemon.wait_event("instance.exited", model=MODEL)["exit"], "SIGKILL")
        self.assert_nothing_left(daemon)
        self.assert_no_mark(daemon)

    def test_L4_descendants_left_behind(self) -> None:
        spawn = ("start: spawn 3 ignore-term\nspawn 3 ignore-term session\n"
                 "spawn 3 ignore-term session orphan\n")
        for end, failure in ((f"print {TRACEBACK}\nstall", "permanent"),
                             ("exit 3", "unclassified"), ("signal ABRT", "unclassified")):
            with self.subTest(end):
                self.workspace = self.new_workspace()
                daemon, _, event = self.failed_load(spawn + "load: " + end)
                self.assertEqual(self.evidence(daemon, event)[0], failure)

    def test_L7_the_worker_says_itself_that_it_failed(self) -> None:
        daemon, said, event = self.failed_load("load: fail permanent the scales are missing")
        failure, reason, _, _ = self.evidence(daemon, event)
        self.assertEqual((failure, reason), ("permanent", "the scales are missing"))
        self.assertIn(reason, said)

    def test_L16_a_reason_has_no_path(self) -> None:
        line = f"ValueError: no config in {self.workspace.models}/My Models/zebra v2.gguf\\n"
        daemon, said, event = self.failed_load(f"load: print {FRAMES}{line}\nstall")
        _, reason, _, _ = self.evidence(daemon, event)
        self.assertEqual(reason, "ValueError: no config in <path>")
        self.assertIn(reason, said)
        self.assertIn("zebra v2.gguf", self.succeeds(daemon, "logs", MODEL))

    def test_L25_T9_T26_one_model_that_fails_leaves_the_others_loadable(self) -> None:
        self.script("", "good")
        daemon, _, _ = self.failed_load("start: exit 1")
        self.assertIn("fault worker", self.succeeds(daemon, "complete", "good", "hello"))
        self.fails(daemon, "complete", MODEL, "hello")
        self.assertEqual(daemon.instance("good")["state"], "ready")
        self.assertEqual(len(list(programs.descendants(daemon.process.pid))), 1)


def status_kib(pid: int, key: str) -> int:
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(key + ":"))


def resident_kib(pid: int) -> int:
    return status_kib(pid, "VmRSS")


def peak_kib(pid: int) -> int:
    return status_kib(pid, "VmHWM")
