"""The clients that berth's users have, against a real berthd: the cases in clients/*.mjs, one by one."""

import shutil
import subprocess
import unittest
from pathlib import Path

import programs
from fault_scenario import MODEL, FaultScenario
from programs import DEADLINE, Berthd, Failed, LineReader

CLIENTS = Path(__file__).resolve().parent / "clients"
INSTALLED = CLIENTS / "node_modules" / ".package-lock.json"
# Asked for by a client that has been told to be impatient, before the load may end.
TRIES = 3


def why_not() -> str:
    if shutil.which("node") is None:
        return "there is no node; deploy/setup --dev installs it"
    if not INSTALLED.exists():
        return f"the npm packages are missing; tests/run installs them (npm ci in {CLIENTS})"
    return ""


class Client:
    """One case of one client, running."""

    def __init__(self, file: str, case: str, environment: dict[str, str]) -> None:
        self.name = f"{file} {case}"
        self.process = subprocess.Popen(
            ["node", f"{file}.mjs", case], cwd=CLIENTS, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env=programs.clean_environment() | environment)
        self.output = LineReader(self.process.stdout)
        self.errors = LineReader(self.process.stderr)

    def succeeds(self, deadline: float = DEADLINE) -> list[str]:
        """Waits for its end, which must be a good one. Returns what it told."""
        try:
            status = self.process.wait(deadline)
        except subprocess.TimeoutExpired:
            self.stop()
            raise Failed(f"{self.name} did not end within {deadline:.0f} s; it said\n" +
                         "\n".join(self.output.lines() + self.errors.lines())) from None
        said = self.errors.wait_closed()
        if status != 0:
            raise Failed(f"{self.name} ended with {status}:\n" + "\n".join(said))
        return self.output.wait_closed()

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(DEADLINE)


@unittest.skipIf(why_not(), why_not())
class Clients(FaultScenario):

    def start(self, daemon: Berthd, file: str, case: str, model: str = "demo",
              grpc: str = "", key: str = "") -> Client:
        started = Client(file, case, {"BERTH_URL": f"http://{daemon.http}",
                                      "BERTH_GRPC": grpc or daemon.grpc, "MODEL": model,
                                      **({"BERTH_API_KEY": key} if key else {})})
        self.addCleanup(started.stop)
        return started

    def grpc_case(self, case: str) -> None:
        """The same for a client that comes by TCP."""
        daemon = self.serve(f'[server]\ngrpc = ["unix:{self.workspace.path}/s", "127.0.0.1:0"]\n')
        addresses = daemon.wait_event("server.listening")["grpc"].split(",")
        tcp = next(address for address in addresses if not address.startswith("unix:"))
        self.start(daemon, "grpc", case, grpc=tcp).succeeds()

    def case(self, file: str, case: str) -> Berthd:
        """Serves the tiny chat model and runs this case, which must succeed."""
        daemon = self.serve()
        self.start(daemon, file, case).succeeds()
        return daemon

    def serve_embeddings(self) -> Berthd:
        self.make_model("embed", "--architecture", "bert", "--pooling", "mean")
        return self.serve(models=())

    def serve_endless(self) -> Berthd:
        self.make_endless_model()
        return self.serve(models=())

    def assert_cancelled(self, daemon: Berthd) -> None:
        """The client's end reached the work; nothing of it is said to be finished or failed."""
        daemon.wait_event("request.cancelled", model="endless")
        self.assertEqual(daemon.events("request.finished") + daemon.events("request.failed"), [])

    # --- npm's openai

    def test_openai_chat(self) -> None:
        self.case("openai", "chat")

    def test_openai_remembers(self) -> None:
        self.case("openai", "remembers")

    def test_openai_stream(self) -> None:
        self.case("openai", "stream")

    def test_openai_stream_helper(self) -> None:
        self.case("openai", "stream_helper")

    def test_openai_tools(self) -> None:
        self.case("openai", "tools")

    def test_openai_tools_stream(self) -> None:
        self.case("openai", "tools_stream")

    def test_openai_json_object(self) -> None:
        self.case("openai", "json_object")

    def test_openai_json_schema(self) -> None:
        self.case("openai", "json_schema")

    def test_openai_completion(self) -> None:
        self.case("openai", "completion")

    def test_openai_logprobs(self) -> None:
        self.case("openai", "logprobs")

    def test_openai_embeddings(self) -> None:
        self.start(self.serve_embeddings(), "openai", "embeddings", "embed").succeeds()

    def test_openai_models(self) -> None:
        self.case("openai", "models")

    def test_openai_errors(self) -> None:
        self.case("openai", "errors")

    def test_openai_with_a_key(self) -> None:
        file = str(self.workspace.path / "keys")
        made = programs.run_berth(self.build, "keys", "add", "ada", "--keys-file", file)
        self.assertEqual(made.returncode, 0, made.stderr.decode())
        daemon = self.serve('[auth]\nkeys_file = "keys"\n')
        self.start(daemon, "openai", "chat", key=made.stdout.decode().strip()).succeeds()
        unknown = self.start(daemon, "openai", "chat", key="berth-" + "x" * 43)
        self.assertEqual(unknown.process.wait(DEADLINE), 1)
        self.assertIn("AuthenticationError: 401", "\n".join(unknown.errors.wait_closed()))

    def test_T31_openai_abort(self) -> None:
        daemon = self.serve_endless()
        self.start(daemon, "openai", "abort", "endless").succeeds()
        self.assert_cancelled(daemon)

    def converges(self, daemon: Berthd, go: Path) -> None:
        """A client with a short time limit asks again and again while one load goes on."""
        client = self.start(daemon, "openai", "retries", MODEL)
        client.output.wait_for(lambda line: line == "asking", "the client asks")
        self.wait_until(lambda: len(daemon.events("request.cancelled")) >= TRIES,
                        lambda: f"{TRIES} tries were given up")
        go.touch()
        client.succeeds()
        self.assertEqual(len(daemon.events("load.started")), 1)
        self.assertEqual(daemon.events("load.failed") + daemon.events("load.interrupted"), [])

    def test_T29_T30_openai_retries_during_a_load_make_one_load(self) -> None:
        go = self.workspace.path / "go"
        self.converges(self.faulty(f"load: progress weights 0.3\nwait {go}"), go)

    def test_T29_T30_openai_retries_while_a_program_starts(self) -> None:
        go = self.workspace.path / "go"
        config = self.fault_command(MODEL, f"load: wait {go}")
        self.converges(self.serve(config, models=()), go)

    # --- npm's ai with @ai-sdk/openai-compatible

    def test_ai_sdk_text(self) -> None:
        self.case("ai_sdk", "text")

    def test_ai_sdk_stream(self) -> None:
        self.case("ai_sdk", "stream")

    def test_ai_sdk_object(self) -> None:
        self.case("ai_sdk", "object")

    def test_ai_sdk_tools(self) -> None:
        self.case("ai_sdk", "tools")

    def test_ai_sdk_embed(self) -> None:
        self.start(self.serve_embeddings(), "ai_sdk", "embed", "embed").succeeds()

    # --- @grpc/grpc-js with reflection

    def test_grpc_reflection(self) -> None:
        self.grpc_case("reflection")

    def test_grpc_generate(self) -> None:
        self.grpc_case("generate")

    def test_grpc_generate_by_unix_socket(self) -> None:
        self.case("grpc", "generate")

    def test_grpc_error(self) -> None:
        self.grpc_case("error")

    def test_grpc_tokens(self) -> None:
        self.grpc_case("tokens")

    def test_grpc_embed(self) -> None:
        self.start(self.serve_embeddings(), "grpc", "embed", "embed").succeeds()

    def test_grpc_health(self) -> None:
        daemon = self.serve()
        told = self.start(daemon, "grpc", "health").succeeds()
        self.assertEqual((told[0], told[-1]), ("state NOT_SERVING", "state SERVING"))

    def test_T31_grpc_cancel(self) -> None:
        daemon = self.serve_endless()
        self.start(daemon, "grpc", "cancel", "endless").succeeds()
        self.assert_cancelled(daemon)

    def test_grpc_deadline(self) -> None:
        self.start(self.serve_endless(), "grpc", "deadline", "endless").succeeds()


if __name__ == "__main__":
    unittest.main()
