"""Loads that are broken off, and a berthd that is killed at any moment of them: no mark, no process,
and a store that opens."""

import os
import random
import signal
import threading

import programs
from fault_scenario import MODEL, OPENAI_PROGRAM, TRACEBACK, FaultScenario, processes_of
from programs import DEADLINE, Berthd

# One moment is some seconds of a loaded machine; BERTH_MOMENTS=50 for more.
MOMENTS = int(os.environ.get("BERTH_MOMENTS", "6"))
SEED = int(os.environ.get("BERTH_SEED", str(random.SystemRandom().randrange(1 << 30))))
LONGEST_MS = 600
SCRIPTS = {
    "dies": "load: progress weights 0.3\nsleep 30ms\nexit 1",
    "silent": "load: progress weights 0.3\nstall",
    # No worker of berth's own can leave its session (L26). These are found at the next start.
    "stubborn": "start: ignore-term\nspawn 2 ignore-term session orphan\nload: sleep 50ms",
    "fatal": f"load: print {TRACEBACK}\nstall",
}


class Interruptions(FaultScenario):

    def test_L20_an_unload_during_a_load_leaves_no_mark(self) -> None:
        daemon = self.faulty("load: progress weights 0.3\nstall")
        client = self.background(daemon, "complete", MODEL, "hello")
        daemon.wait_event("load.started", model=MODEL)
        self.succeeds(daemon, "unload", MODEL, "--force")
        self.assertNotEqual(client.wait(), 0)
        daemon.wait_event("instance.exited", model=MODEL)
        self.assert_nothing_left(daemon)
        self.assert_no_mark(daemon)
        self.assertEqual(daemon.events("load.failed"), [])

    def test_L20_a_shutdown_during_a_load_leaves_no_mark(self) -> None:
        daemon = self.faulty("load: progress weights 0.3\nstall")
        client = self.background(daemon, "complete", MODEL, "hello")
        daemon.wait_event("load.started", model=MODEL)
        self.assertEqual(daemon.stop(), 0)
        client.wait()
        self.wait_all_gone()
        self.assert_no_mark(self.fault_daemon().wait_listening())

    def test_L21_a_restart_drops_what_may_pass_and_keeps_the_rest(self) -> None:
        self.script("load: signal SEGV", "passing")
        daemon = self.faulty("load: exit 7")
        for model in ("passing", MODEL):
            self.fails(daemon, "complete", model, "hello")
        self.assertEqual(len(daemon.json("failures")["failures"]), 2)
        self.assertEqual(daemon.stop(), 0)
        second = self.fault_daemon().wait_listening()
        self.assertEqual([one["model"] for one in second.json("failures")["failures"]], [MODEL])
        self.assert_stays_refused(second)
        kept = second.json("failures", "passing", "--all")["failures"]
        self.assertEqual(len(kept), 1, "the history has it still")

    def test_L4_L18_a_daemon_killed_at_any_moment_leaves_nothing_and_its_store_opens(self) -> None:
        dice = random.Random(SEED)
        print(f"BERTH_SEED={SEED} BERTH_MOMENTS={MOMENTS}")
        for model, script in SCRIPTS.items():
            self.script(script, model)
        models = [*SCRIPTS, "program"]
        config = self.python_command("program", OPENAI_PROGRAM, "--family")
        daemon = self.fault_daemon(config)
        for moment in range(MOMENTS):
            print("moment", moment)
            daemon.wait_listening()
            self.assert_nothing_left(daemon)
            clients = [self.background(daemon, "load", model) for model in models]
            if dice.random() < 0.5:
                clients.append(self.background(daemon, "unload", "stubborn", "--force"))
            if dice.random() < 0.3:
                clients.append(self.background(daemon, "retry", "dies"))
            # The moment itself; nothing is expected to have happened by then.
            threading.Event().wait(dice.randrange(LONGEST_MS) / 1000)
            self.kill(daemon)
            for client in clients:
                client.wait()
            daemon = self.fault_daemon()
        daemon.wait_listening()
        self.fails(daemon, "retry", "dies")
        standing = {one["model"]: one["class"] for one in daemon.json("failures")["failures"]}
        self.assertEqual(standing["dies"], "unclassified")
        self.assertNotIn("silent", standing)
        self.assertNotIn("stubborn", standing)
        self.assertEqual(daemon.stop(), 0)
        self.wait_all_gone()

    def kill(self, daemon: Berthd) -> None:
        """SIGKILL, after which only what left its session may live on until the next start."""
        daemon.may_fail = True
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait(DEADLINE)
        for pid in processes_of(self.workspace.path):
            if "stubborn.gguf" not in programs.command_line(pid):
                programs.wait_gone(pid)


if __name__ == "__main__":
    import unittest
    unittest.main()
