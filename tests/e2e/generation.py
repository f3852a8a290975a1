"""Answers: what a client sees from the first request to the last token, and what breaks it."""

import json
import os
import re
import signal

import programs
from scenario import ANSWER, QUESTION, Scenario


class Generation(Scenario):

    def test_chat_answers(self) -> None:
        daemon = self.serve()
        self.answers(daemon)
        self.assertEqual(len(daemon.events("load.started")), 1)
        self.answers(daemon)
        self.assertEqual(len(daemon.events("load.started")), 1)

    def test_stream_as_json_lines(self) -> None:
        daemon = self.serve()
        printed = self.succeeds(daemon, "chat", "demo", QUESTION, "--temperature", "0", "--json")
        events = [json.loads(line) for line in printed.splitlines()]
        self.assertIn("accepted", events[0])
        self.assertEqual("".join(event["token"]["text"] for event in events if "token" in event),
                         ANSWER)
        done = events[-1]["done"]
        self.assertEqual(done["finish_reason"], "stop")
        self.assertEqual(done["model"], "demo")
        self.assertGreater(int(done["usage"]["prompt_tokens"]), 0)
        self.assertGreater(int(done["usage"]["completion_tokens"]), 0)

    def test_max_tokens(self) -> None:
        daemon = self.serve()
        printed = self.succeeds(daemon, "chat", "demo", QUESTION, "--temperature", "0",
                                "--max-tokens", "2", "--json")
        done = json.loads(printed.splitlines()[-1])["done"]
        self.assertEqual(done["finish_reason"], "length")
        self.assertEqual(int(done["usage"]["completion_tokens"]), 2)

    def test_T93_overlong_prompt_is_refused_with_both_numbers(self) -> None:
        daemon = self.serve("[defaults]\ncontext = 256\n")
        said = self.fails(daemon, "complete", "demo", "hello " * 1000)
        numbers = [int(number) for number in re.findall(r"\d+", said)]
        self.assertIn(256, numbers, said)
        self.assertTrue(any(1000 <= number <= 4000 for number in numbers), said)
        self.answers(daemon)

    def test_invalid_utf8(self) -> None:
        daemon = self.serve()
        for arguments in ((b"complete", b"demo", b"caf\xe9"), (b"chat", b"demo", b"\xff\xfe")):
            done = daemon.berth(*arguments)
            self.assertIn(done.returncode, (1, 2))
            self.assertIn("UTF-8", done.stderr.decode(errors="replace"))
        self.answers(daemon)

    def test_T23_simultaneous_requests_make_one_load(self) -> None:
        daemon = self.serve()
        clients = [self.background(daemon, "chat", "demo", QUESTION, "--temperature", "0")
                   for _ in range(8)]
        for client in clients:
            self.assertEqual(client.wait(), 0, "\n".join(client.errors.lines()))
            self.assertEqual("\n".join(client.output.lines()).strip(), ANSWER)
        self.assertEqual(len(daemon.events("load.started")), 1)

    def test_T29_a_client_that_leaves_does_not_end_the_load(self) -> None:
        daemon = self.serve()
        client = self.background(daemon, "complete", "demo", "hello")
        daemon.wait_event("load.started", model="demo")
        client.stop()
        daemon.wait_event("load.ready", model="demo")

    def test_T31_a_client_that_leaves_ends_its_work(self) -> None:
        self.make_endless_model()
        daemon = self.serve(models=())
        client = self.endless_stream(daemon)
        client.stop()
        daemon.wait_event("request.cancelled", model="endless")
        # The place is free: with all sequences but one this could not be answered otherwise.
        self.succeeds(daemon, "complete", "endless", "hello", "--max-tokens", "1")

    def test_L9_T72_killed_worker_fails_its_stream_and_the_next_request_works(self) -> None:
        self.make_endless_model()
        daemon = self.serve()
        self.answers(daemon)
        client = self.endless_stream(daemon)
        first = daemon.instance("endless")
        # Stopped, so that the stream cannot end by itself before the kill.
        os.kill(int(first["pid"]), signal.SIGSTOP)
        self.assertIsNone(client.process.poll())
        os.kill(int(first["pid"]), signal.SIGKILL)
        self.assertEqual(client.wait(), 1)
        said = "\n".join(client.errors.lines() + client.output.lines())
        self.assertIn("SIGKILL", said)
        error = json.loads(client.output.lines()[-1])["error"]
        self.assertEqual(error["reason"], "worker_died")
        daemon.wait_event("instance.died", model="endless")

        # Another model's worker is not touched, and the next request starts a new one.
        self.answers(daemon)
        self.succeeds(daemon, "complete", "endless", "hello", "--max-tokens", "3")
        self.assertNotEqual(daemon.instance("endless")["id"], first["id"])
        self.assertEqual(len(daemon.events("instance.died")), 1)

    def test_ps_shows_the_instance_with_its_memory(self) -> None:
        daemon = self.serve("[defaults]\ncontext = 1024\n")
        self.answers(daemon)
        instance = daemon.instance("demo")
        self.assertEqual(instance["state"], "ready")
        self.assertEqual(int(instance["window"]), 1024)
        # 2 817 344 bytes of file; 2 KiB of KV cache for each token of one sequence at least.
        self.assertGreater(int(instance["weights_bytes"]), 2_000_000)
        self.assertGreaterEqual(int(instance["kv_bytes"]), 2 * 1024 * 1024)
        self.assertGreater(int(instance["working_bytes"]), 0)
        self.assertGreater(int(instance["resident_bytes"]), 1_000_000)
        self.assertTrue(os.path.exists(instance["socket"]))
        table = self.succeeds(daemon, "ps")
        self.assertIn("demo", table)
        self.assertIn("MiB", table)
        self.assertIn(str(instance["pid"]), table)

    def test_unload_ends_the_process(self) -> None:
        self.make_endless_model()
        daemon = self.serve()
        self.succeeds(daemon, "load", "demo")
        worker = int(daemon.instance("demo")["pid"])
        self.succeeds(daemon, "unload", "demo")
        programs.wait_gone(worker)
        self.assertEqual(daemon.json("ps").get("instances", []), [])
        self.fails(daemon, "unload", "demo")

        client = self.endless_stream(daemon)
        self.fails(daemon, "unload", "endless")
        self.succeeds(daemon, "unload", "endless", "--force")
        self.assertEqual(client.wait(), 1)
        self.answers(daemon)
