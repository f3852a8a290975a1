"""The memory plan with the real programs: what fits stays together, what does not is swapped in the
stated order, refusals carry true numbers, and `berth plan` predicted each of them."""

import json
import time

from programs import DEADLINE, Berthd
from scenario import Scenario

MIB = 1 << 20
CONFIG = """[server]
grace = "500ms"
max_wait = "1s"
[memory]
host_budget = "{budget}MiB"
[defaults]
context = 2048
sequences = 2
"""
# Some 100 MiB each, and one that is larger than all of them.
SIZES = {"a": "4", "b": "4", "c": "4", "huge": "40"}


class MemoryPlanScenario(Scenario):

    def serve_models(self, budget: int) -> Berthd:
        self.workspace.config(CONFIG.format(budget=budget))
        for name, layers in SIZES.items():
            self.make_model(name, "--layers", layers, "--embedding", "512", "--feed-forward", "2048",
                            "--heads", "8", "--kv-heads", "8", "--vocabulary", "4096", "--context",
                            "8192", "--seed", str(len(name)))
        return self.berthd().wait_listening()

    def plan(self, daemon: Berthd, model: str, *options: str) -> dict:
        """What `berth plan` says, whatever it ends with."""
        done = daemon.berth("plan", model, *options, "--json")
        plan = json.loads(done.stdout)
        self.assertEqual(done.returncode, 1 if plan["decision"] == "refuse" else 0, done.stderr)
        return plan

    def plan_that(self, daemon: Berthd, model: str, decision: str) -> dict:
        """Waits until the time alone has made it that decision, as when grace has passed."""
        until = time.monotonic() + DEADLINE
        while True:
            plan = self.plan(daemon, model)
            if plan["decision"] == decision or time.monotonic() > until:
                self.assertEqual(plan["decision"], decision, plan["sentence"])
                return plan
            time.sleep(0.05)  # polls: nobody tells of it

    def resident(self, daemon: Berthd) -> set[str]:
        return {one["model"] for one in daemon.json("ps")["instances"]}

    def test_M7_M8_what_fits_stays_and_what_does_not_is_swapped_as_planned(self) -> None:
        daemon = self.serve_models(250)
        for name in ("a", "b"):
            plan = self.plan(daemon, name)
            self.assertEqual(plan["decision"], "fits", plan["sentence"])
            self.assertEqual(plan["window"], 2048)
            self.assertEqual(plan["window_bound"], "configured")
            self.succeeds(daemon, "load", name)
            charge = daemon.instance(name)["charge"]
            self.assertEqual(charge[0]["domain"], "host")
            self.assertEqual(self.plan(daemon, name)["decision"], "resident")
        self.assertEqual(self.resident(daemon), {"a", "b"})

        plan = self.plan_that(daemon, "c", "evict")
        domain = plan["domains"][0]
        self.assertEqual(domain["missing_bytes"],
                         domain["needed_bytes"] - domain["available_bytes"])
        victims = [victim["instance_id"] for victim in plan["victims"]]
        self.assertEqual(len(victims), 1, "one of them is enough")
        self.succeeds(daemon, "load", "c")
        evicted = [event["instance"] for event in daemon.events("model.evicted")]
        self.assertEqual(evicted, victims)
        self.assertEqual(len(self.resident(daemon)), 2)
        self.assertIn("c", self.resident(daemon))

    def test_M14_what_never_fits_is_refused_with_the_numbers_of_its_plan(self) -> None:
        daemon = self.serve_models(250)
        plan = self.plan(daemon, "huge")
        self.assertEqual(plan["decision"], "refuse", plan["sentence"])
        self.assertEqual(plan["refusal"], "never_fits")
        domain = plan["domains"][0]
        self.assertEqual(domain["limit_bytes"], 250 * MIB)
        self.assertEqual(domain["deficit_bytes"], domain["needed_bytes"] - domain["limit_bytes"])
        said = self.fails(daemon, "complete", "huge", "x", "--json")
        self.assertIn("more than models may ever have", said)
        done = daemon.berth("complete", "huge", "x", "--json")
        error = json.loads(done.stdout.decode().strip().splitlines()[-1])["error"]
        self.assertEqual(error["reason"], "insufficient_memory")
        for field in ("needed_bytes", "limit_bytes", "available_bytes", "deficit_bytes"):
            self.assertEqual(error[field], plan["error"][field], field)

    def test_M14_what_would_fit_does(self) -> None:
        daemon = self.serve_models(250)
        plan = self.plan(daemon, "a", "--context", "1048576", "--sequences", "4")
        self.assertEqual(plan["refusal"], "never_fits", plan["sentence"])
        fits = plan["would_fit"]
        self.assertGreater(fits["context"], 0)
        again = self.plan(daemon, "a", "--context", str(fits["context"]), "--sequences",
                          str(fits["sequences"]))
        self.assertEqual(again["decision"], "fits", again["sentence"])

    def test_M16_a_pin_keeps_its_model_and_one_that_does_not_fit_is_refused(self) -> None:
        daemon = self.serve_models(250)
        for name in ("a", "b"):
            self.succeeds(daemon, "pin", name)
            self.succeeds(daemon, "load", name)
        self.assertIn("Pinned models are in the way", self.fails(daemon, "pin", "c"))
        plan = self.plan(daemon, "c")
        self.assertEqual(plan["refusal"], "pinned", plan["sentence"])
        self.assertEqual(sorted(plan["blockers"]), ["a", "b"])
        self.fails(daemon, "complete", "c", "x")
        self.assertIn("berth unpin a", self.fails(daemon, "unload", "a"))
        self.succeeds(daemon, "unpin", "a")
        self.assertEqual(self.plan_that(daemon, "c", "evict")["victims"][0]["model"], "a")
        self.succeeds(daemon, "complete", "c", "x", "--max-tokens", "1")
        self.assertEqual(self.resident(daemon), {"b", "c"})

    def test_M3_memory_shows_what_is_charged(self) -> None:
        daemon = self.serve_models(250)
        self.succeeds(daemon, "load", "a")
        memory = daemon.json("memory")
        self.assertTrue(memory["counted"])
        host = memory["domains"][0]
        self.assertEqual(host["budget_bytes"], 250 * MIB)
        charged = memory["instances"][0]["charge"][0]["bytes"]
        self.assertEqual(host["charged_bytes"], charged)
        self.assertEqual(sum(host["charged"].values()), charged)
        self.assertEqual(host["available_bytes"], host["limit_bytes"] - charged)
        status, text = daemon.get("/metrics")
        self.assertEqual(status, 200)
        self.assertIn('berth_memory_budget_bytes{domain="host"} 262144000', text)
        self.assertIn("free for models", self.succeeds(daemon, "memory"))
