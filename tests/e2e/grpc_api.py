"""The gRPC front: who comes by which door, and what he may do there."""

import os
import socket
import stat
import subprocess
import unittest

import programs
from scenario import QUESTION, ANSWER, Scenario

NOBODY = 65534


@unittest.skipUnless(os.geteuid() == 0, "only root can be another user")
class GrpcApi(Scenario):

    def serve_all(self) -> programs.Berthd:
        """A daemon as a service has it, whose socket other users reach."""
        self.workspace.add_model("demo")
        file = self.workspace.system_config()
        os.chmod(self.workspace.path, 0o755)
        return self.berthd(arguments=["--config", str(file)]).wait_listening()

    NOBODYS = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/",
               "env": {"PATH": "/usr/bin", "HOME": "/"}}

    def command(self, daemon: programs.Berthd, *arguments: str) -> list[str]:
        return [str(self.build / "bin" / "berth"), *arguments, "--endpoint", daemon.grpc]

    def as_nobody(self, daemon: programs.Berthd, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(self.command(daemon, *arguments), **self.NOBODYS, text=True,
                              capture_output=True, timeout=programs.DEADLINE)

    def connect_as(self, daemon: programs.Berthd, user: int) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(connection.close)
        connection.settimeout(programs.DEADLINE)
        os.seteuid(user)
        try:
            connection.connect(daemon.grpc.removeprefix("unix:"))
        finally:
            os.seteuid(0)
        return connection

    def test_S6_clients_keep_no_admin_out(self) -> None:
        daemon = self.serve_all()
        connections = [self.connect_as(daemon, user)
                       for user in (20001, 20002, 20003) for _ in range(200)]
        self.assertTrue(connections[0].recv(1))
        self.assertFalse(connections[-1].recv(1), "there is no bound")
        self.succeeds(daemon, "models")

    def test_S6_a_users_stream_outlasts_the_coming_of_others(self) -> None:
        daemon = self.serve_all()
        stream = subprocess.Popen(self.command(daemon, "events", "--follow"), **self.NOBODYS,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(stream.wait, programs.DEADLINE)
        self.addCleanup(stream.kill)
        lines = programs.LineReader(stream.stdout)
        self.succeeds(daemon, "load", "demo")
        lines.wait_for(lambda line: "load.ready" in line, "the load")
        served = [user for user in range(20001, 20101) if self.connect_as(daemon, user).recv(1)]
        self.assertGreater(len(served), 64, "nobody had to go")
        self.succeeds(daemon, "unload", "demo")
        lines.wait_for(lambda line: "instance.exited" in line, "the end of the instance")

    def test_S6_any_user_is_a_client(self) -> None:
        daemon = self.serve_all()
        answered = self.as_nobody(daemon, "chat", "demo", QUESTION, "--temperature", "0")
        self.assertEqual(answered.returncode, 0, answered.stderr)
        self.assertEqual(answered.stdout.strip(), ANSWER)
        models = self.as_nobody(daemon, "models", "--json")
        self.assertEqual(models.returncode, 0, models.stderr)
        self.assertIn('"demo"', models.stdout)
        self.assertNotIn(str(self.workspace.path), models.stdout)
        instances = self.as_nobody(daemon, "ps", "--json")
        self.assertEqual(instances.returncode, 0, instances.stderr)
        self.assertIn('"demo"', instances.stdout)
        self.assertNotIn(str(self.workspace.path), instances.stdout)
        self.assertIn(str(self.workspace.path), daemon.berth("ps", "--json").stdout.decode())

    def test_S6_a_client_administers_nothing(self) -> None:
        daemon = self.serve_all()
        self.succeeds(daemon, "load", "demo")
        for verb in (["load", "demo"], ["unload", "demo"], ["retry", "demo"], ["logs", "demo"]):
            refused = self.as_nobody(daemon, *verb)
            self.assertEqual(refused.returncode, 1, f"{verb}: {refused.stdout}{refused.stderr}")
            self.assertIn("admin", refused.stderr)
        self.assertEqual(daemon.instance()["state"], "ready")

    def test_S6_modes_of_the_sockets(self) -> None:
        daemon = self.serve_all()
        self.succeeds(daemon, "load", "demo")
        run = self.workspace.path / "run"
        self.assertEqual(stat.S_IMODE(os.stat(run / "berth.sock").st_mode), 0o666)
        self.assertEqual(stat.S_IMODE(os.stat(run).st_mode), 0o755)
        worker = daemon.instance()["socket"]
        folder = os.path.dirname(worker.removeprefix("unix:"))
        self.assertEqual(stat.S_IMODE(os.stat(folder).st_mode), 0o700)

    def test_a_demo_is_its_users_own(self) -> None:
        daemon = self.serve()
        socket = daemon.grpc.removeprefix("unix:")
        self.assertEqual(stat.S_IMODE(os.stat(socket).st_mode), 0o600)
        self.answers(daemon)
