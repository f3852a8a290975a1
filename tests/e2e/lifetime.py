"""How berthd ends, in good order or not, and what must be true for the next one."""

import signal

import programs
from programs import DEADLINE
from scenario import Scenario


class Lifetime(Scenario):

    def test_second_daemon_on_the_same_state_is_refused_and_names_the_pid(self) -> None:
        first = self.serve()
        self.refused_start(str(first.process.pid), str(self.workspace.path))
        self.answers(first)

    def test_L4_T64_no_worker_outlives_a_killed_daemon(self) -> None:
        self.make_endless_model()
        daemon = self.serve()
        self.answers(daemon)
        client = self.endless_stream(daemon)
        workers = [int(daemon.instance(model)["pid"]) for model in ("demo", "endless")]
        daemon.may_fail = True
        daemon.process.send_signal(signal.SIGKILL)
        daemon.process.wait(DEADLINE)
        took = [programs.wait_gone(worker) for worker in workers]
        print(f"the workers were gone {sum(took) * 1000:.0f} ms after berthd")
        self.assertIn(client.wait(), (1, 3))

        second = self.berthd().wait_listening()
        self.assertEqual(second.json("ps").get("instances", []), [])
        self.answers(second)

    def test_L29_sigterm_lets_a_stream_finish(self) -> None:
        self.make_endless_model()
        daemon = self.serve(models=())
        client = self.background(daemon, "complete", "endless", "hello", "--temperature", "0",
                                 "--max-tokens", "300", "--json")
        client.output.wait_for(lambda line: '"token"' in line, "the first token")
        worker = int(daemon.instance("endless")["pid"])
        daemon.process.send_signal(signal.SIGTERM)
        daemon.wait_event("server.stopping")
        self.assertEqual(client.wait(), 0, "\n".join(client.errors.lines()))
        self.assertIn('"done"', client.output.lines()[-1])
        self.assertEqual(daemon.process.wait(DEADLINE), 0)
        programs.wait_gone(worker)
        self.assertEqual(daemon.events("server.stopped")[0]["event"], "server.stopped")

    def test_L29_what_does_not_finish_in_time_ends_with_shutting_down(self) -> None:
        self.make_endless_model()
        daemon = self.serve('[server]\ndrain_timeout = "200ms"\n', models=())
        client = self.endless_stream(daemon)
        worker = int(daemon.instance("endless")["pid"])
        daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(client.wait(), 1)
        self.assertIn("shutting_down", client.output.lines()[-1])
        self.assertEqual(daemon.process.wait(DEADLINE), 0)
        programs.wait_gone(worker)

    def test_L29_while_it_drains_new_work_is_refused(self) -> None:
        self.make_endless_model()
        daemon = self.serve()
        client = self.endless_stream(daemon)
        daemon.process.send_signal(signal.SIGTERM)
        daemon.wait_event("server.stopping")
        done = daemon.berth("complete", "demo", "hello")
        self.assertIn(done.returncode, (1, 3), done.stderr.decode())
        client.stop()
        self.assertEqual(daemon.process.wait(DEADLINE), 0)

    def test_sigterm_when_idle(self) -> None:
        daemon = self.serve()
        self.answers(daemon)
        worker = int(daemon.instance("demo")["pid"])
        daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.process.wait(DEADLINE), 0)
        programs.wait_gone(worker)

    def test_sigint_ends_it_as_sigterm_does(self) -> None:
        daemon = self.serve(models=())
        daemon.process.send_signal(signal.SIGINT)
        self.assertEqual(daemon.process.wait(DEADLINE), 0)
