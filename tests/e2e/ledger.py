"""What the ledger of failures keeps, lifts and tells."""

import json

from fault_scenario import MODEL, REASON, TRACEBACK, FaultScenario

FATAL = f"load: print {TRACEBACK}\nstall"


class Ledger(FaultScenario):

    def test_L24_the_end_of_an_older_instance_does_not_mark_the_newer_one(self) -> None:
        daemon = self.faulty(f"start: ignore-term\nspawn 20 ignore-term session\n{FATAL}")
        self.fails(daemon, "complete", MODEL, "hello")
        first = self.record(daemon)
        self.script("")
        # Whether its process is gone already or not.
        self.succeeds(daemon, "retry", MODEL)
        daemon.wait_event("instance.exited", model=MODEL, instance=first["instance_id"])
        self.assertEqual(daemon.instance(MODEL)["state"], "ready")
        self.assertNotEqual(daemon.instance(MODEL)["id"], first["instance_id"])
        self.assertEqual(daemon.json("failures", MODEL)["failures"], [])
        self.assertIn("fault worker", self.succeeds(daemon, "complete", MODEL, "hello"))

    def test_L1_L20_the_end_of_an_unloaded_instance_does_not_mark_the_next_one(self) -> None:
        reached = self.workspace.path / "reached"
        daemon = self.faulty(f"load: touch {reached}\nstall")
        waiting = self.background(daemon, "load", MODEL)
        first = daemon.wait_event("load.started", model=MODEL)
        self.wait_file(reached)
        self.script("")
        unload = self.background(daemon, "unload", MODEL, "--force")
        self.assertEqual(waiting.wait(), 1)
        self.succeeds(daemon, "load", MODEL)
        self.assertEqual(unload.wait(), 0)
        daemon.wait_event("instance.exited", instance=first["instance"])
        self.assertEqual(daemon.instance(MODEL)["state"], "ready")
        self.assert_no_mark(daemon)

    def test_L23_each_setting_that_a_load_depends_on_lifts_it_and_is_named(self) -> None:
        daemon = self.faulty(FATAL)
        self.fails(daemon, "complete", MODEL, "hello")
        config = f"[model.{MODEL}]\n"
        for setting, field in (("sequences = 2", "sequences"), ("context = 64", "window"),
                               ('kv_type = "f32"', "kv_types"), ("batch = 64", "launch")):
            record = self.record(daemon)
            self.assertEqual(daemon.stop(), 0)
            config += setting + "\n"
            daemon = self.fault_daemon(config).wait_listening()
            lifted = daemon.json("failures", MODEL, "--all")["failures"][0]
            self.assertEqual((lifted["id"], lifted["lifted"]["cause"], lifted["lifted"]["field"]),
                             (record["id"], "provenance", field))
            print(setting, "->", lifted["lifted"]["text"])
            self.assertEqual(daemon.json("failures")["failures"], [])
            self.fails(daemon, "complete", MODEL, "hello")

    def test_L18_L22_json_of_each_verb(self) -> None:
        daemon = self.faulty(FATAL)
        refused = daemon.berth("complete", MODEL, "hello", "--json")
        self.assertEqual(refused.returncode, 1)
        error = json.loads(refused.stdout.splitlines()[-1])["error"]
        record = self.record(daemon)
        self.assertIn(REASON, json.dumps(error))
        self.assertIn(record["id"], json.dumps(error))
        report = daemon.json("why", MODEL)
        self.assertEqual((report["standing"]["reason"], report["standing"]["outlives_restart"]),
                         (REASON, True))
        self.assertTrue(report["standing"]["way_out"])
        self.assertEqual([load["outcome"] for load in report["loads"]], ["failed"])

        retried = daemon.berth("retry", MODEL, "--json")
        self.assertEqual(retried.returncode, 1)
        lines = [json.loads(line) for line in retried.stdout.splitlines()]
        self.assertEqual(lines[0]["lifted"]["id"], record["id"])
        self.assertEqual(lines[0]["lifted"]["lifted"]["cause"], "hand")
        self.assertIn(REASON, json.dumps(lines[-1]["error"]))
        self.assertNotEqual(self.record(daemon)["id"], record["id"])

    def test_L20_a_load_that_a_kill_of_the_daemon_ended_leaves_no_mark(self) -> None:
        daemon = self.faulty("load: stall")
        client = self.background(daemon, "load", MODEL)
        daemon.wait_event("load.started", model=MODEL)
        daemon.may_fail = True
        daemon.process.kill()
        self.assertEqual(client.wait(), 3)
        self.wait_all_gone()
        daemon = self.fault_daemon().wait_listening()
        self.assert_no_mark(daemon)
        self.assertEqual(daemon.json("why", MODEL)["state"], "absent")
        loads = daemon.json("why", MODEL)["loads"]
        self.assertEqual([load["outcome"] for load in loads], ["interrupted"])
