"""The command line's own promises: exit codes, JSON, what can be read while something happens."""

import json

import programs
from scenario import Scenario


class Commands(Scenario):

    def test_no_daemon_is_exit_code_3(self) -> None:
        nowhere = f"unix:{self.workspace.path}/none.sock"
        for arguments in (("ps",), ("models",), ("chat", "demo", "hi"), ("load", "demo")):
            done = programs.run_berth(self.build, *arguments, endpoint=nowhere)
            self.assertEqual(done.returncode, 3, (arguments, done.stderr))
            self.assertIn("none.sock", done.stderr.decode())

    def test_wrong_usage_is_exit_code_2(self) -> None:
        for arguments in (("no-such-verb",), ("load",), ("ps", "--no-such-option"),
                          ("ps", "--endpoint", "nonsense"), ()):
            done = programs.run_berth(self.build, *arguments)
            self.assertEqual(done.returncode, 2, (arguments, done.stderr))

    def test_help_and_version(self) -> None:
        for arguments in (("--help",), ("chat", "--help"), ("version",)):
            done = programs.run_berth(self.build, *arguments)
            self.assertEqual(done.returncode, 0, (arguments, done.stderr))
            self.assertTrue(done.stdout)

    def test_reading_verbs_print_one_json_document(self) -> None:
        daemon = self.serve()
        self.answers(daemon)
        for arguments in (("ps",), ("models",), ("config", "show"), ("version",), ("doctor",)):
            done = daemon.berth(*arguments, "--json")
            self.assertIn(done.returncode, (0, 1) if arguments == ("doctor",) else (0,),
                          (arguments, done.stderr))
            json.loads(done.stdout)

    def test_events_tell_the_life_of_an_instance(self) -> None:
        daemon = self.serve()
        self.answers(daemon)
        self.succeeds(daemon, "unload", "demo")
        printed = self.succeeds(daemon, "events", "--json")
        names = [json.loads(line)["name"] for line in printed.splitlines()]
        for name in ("load.started", "load.ready", "instance.exited"):
            self.assertIn(name, names)
        self.assertLess(names.index("load.started"), names.index("load.ready"))

    def test_events_can_be_followed(self) -> None:
        daemon = self.serve()
        follower = self.background(daemon, "events", "-f", "--json")
        self.succeeds(daemon, "load", "demo")
        follower.output.wait_for(lambda line: '"load.ready"' in line, "the event load.ready")

    def test_logs_show_what_the_worker_wrote(self) -> None:
        daemon = self.serve()
        self.succeeds(daemon, "load", "demo")
        self.assertTrue(self.succeeds(daemon, "logs", "demo").strip())
        self.fails(daemon, "logs", "no-such-model")

    def test_T16_reading_verbs_answer_during_a_load(self) -> None:
        self.make_model("large", "--layers", "8", "--embedding", "512", "--feed-forward", "2048",
                        "--heads", "8", "--kv-heads", "8")
        daemon = self.serve(models=())
        loading = self.background(daemon, "load", "large")
        daemon.wait_event("load.started", model="large")
        self.assertEqual(daemon.instance("large")["model"], "large")
        self.succeeds(daemon, "models")
        self.assertEqual(loading.wait(), 0, "\n".join(loading.errors.lines()))
        self.assertEqual(daemon.instance("large")["state"], "ready")

    def test_load_of_a_ready_model(self) -> None:
        daemon = self.serve()
        self.succeeds(daemon, "load", "demo")
        self.succeeds(daemon, "load", "demo")
        self.succeeds(daemon, "load", "demo", "--no-wait")
        self.assertEqual(len(daemon.events("load.started")), 1)

    def test_T101_prompt_from_standard_input(self) -> None:
        daemon = self.serve()
        done = daemon.berth("chat", "demo", "-", "--temperature", "0",
                            input_bytes=b"What is the capital of France?")
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        self.assertEqual(done.stdout.decode().strip(), "The capital of France is Paris.")
