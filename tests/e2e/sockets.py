"""Where berthd listens: sockets in use, left over or too long, and the two health routes."""

import os
import signal
import socket

import programs
from scenario import Scenario


class Sockets(Scenario):

    def test_socket_in_use(self) -> None:
        first = self.serve()
        path = first.grpc.removeprefix("unix:")
        other = self.new_workspace()
        other.config(f'[server]\ngrpc = ["unix:{path}"]\n')
        self.refused_start(path, workspace=other)
        self.answers(first)

    def test_socket_of_another_program(self) -> None:
        path = str(self.workspace.path / "taken.sock")
        with socket.socket(socket.AF_UNIX) as taken:
            taken.bind(path)
            taken.listen()
            self.workspace.config(f'[server]\ngrpc = ["unix:{path}"]\n')
            self.refused_start(path)
        self.assertTrue(os.path.exists(path))

    def test_a_file_is_not_taken_for_a_socket(self) -> None:
        path = self.workspace.path / "file.sock"
        path.write_text("precious")
        self.workspace.config(f'[server]\ngrpc = ["unix:{path}"]\n')
        self.refused_start(str(path))
        self.assertEqual(path.read_text(), "precious")

    def test_path_too_long(self) -> None:
        path = self.workspace.path / ("x" * 120)
        self.workspace.config(f'[server]\ngrpc = ["unix:{path}"]\n')
        said = self.refused_start(str(len(str(path))), "x" * 120)
        self.assertTrue("107" in said or "108" in said, said)

    def test_demo_in_a_folder_too_deep(self) -> None:
        deep = self.workspace.path / ("deep-" * 25)
        deep.mkdir()
        said = self.refused_start(arguments=["--demo", str(deep)])
        self.assertTrue("107" in said or "108" in said, said)

    def test_http_address_in_use(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = f"127.0.0.1:{taken.getsockname()[1]}"
            file = self.workspace.system_config(f'[server]\nhttp = "{address}"\n')
            self.refused_start(address, arguments=["--config", str(file)])

    def test_a_socket_left_by_a_crash_is_replaced(self) -> None:
        first = self.serve()
        first.may_fail = True
        first.process.send_signal(signal.SIGKILL)
        first.process.wait(programs.DEADLINE)
        self.assertTrue(os.path.exists(first.grpc.removeprefix("unix:")))
        second = self.berthd().wait_listening()
        self.assertEqual(second.grpc, first.grpc)
        self.answers(second)

    def test_T94_live_and_ready(self) -> None:
        daemon = self.serve(models=())
        self.assertEqual(daemon.get("/livez")[0], 200)
        self.assertEqual(daemon.get("/readyz")[0], 200)
        self.assertEqual(daemon.get("/no-such-route")[0], 404)

    def test_loopback_and_mode(self) -> None:
        daemon = self.serve(models=())
        self.assertTrue(daemon.http.startswith("127.0.0.1:"))
        self.assertNotEqual(daemon.http, "127.0.0.1:0")
        self.assertEqual(daemon.output.lines()[0].count("server.listening"), 1)
