"""OpenAI's API over HTTP: what a client that speaks nothing else sees."""

import base64
import http.client
import json
import re
import struct
import urllib.error
import urllib.request

from programs import DEADLINE, Berthd
from scenario import ANSWER, QUESTION, Scenario

MESSAGES = [{"role": "user", "content": QUESTION}]


class Answer:
    """One HTTP answer, read to its end."""

    def __init__(self, status: int, headers, body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    def json(self):
        return json.loads(self.body)

    def error(self) -> dict:
        return self.json()["error"]

    def events(self) -> list:
        """The data of a stream's events; those that are JSON parsed."""
        data = [line[6:] for line in self.body.decode().split("\n") if line.startswith("data: ")]
        return [line if line == "[DONE]" else json.loads(line) for line in data]

    def comments(self) -> list[str]:
        return [line[2:] for line in self.body.decode().split("\n") if line.startswith(": ")]


class OpenaiHttpScenario(Scenario):

    def post(self, daemon: Berthd, path: str, body, headers: dict | None = None) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{daemon.http}{path}", data, {"Content-Type": "application/json",
                                                  **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
                return Answer(answer.status, answer.headers, answer.read())
        except urllib.error.HTTPError as refused:
            return Answer(refused.code, refused.headers, refused.read())

    def chat(self, daemon: Berthd, **members) -> Answer:
        body = {"model": "demo", "messages": MESSAGES, "temperature": 0, **members}
        return self.post(daemon, "/v1/chat/completions", body)

    def refused(self, answer: Answer, status: int, code: str, param: str | None = None) -> dict:
        self.assertEqual(answer.status, status, answer.body)
        error = answer.error()
        self.assertEqual((error["code"], error["param"]), (code, param), answer.body)
        self.assertTrue(error["message"])
        return error

    def test_a_chat_answers(self) -> None:
        daemon = self.serve()
        answer = self.chat(daemon)
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(answer.headers.get_content_type(), "application/json")
        said = answer.json()
        self.assertEqual(said["object"], "chat.completion")
        self.assertEqual(said["id"], "chatcmpl-" + answer.headers["X-Request-Id"])
        self.assertEqual(said["model"], "demo")
        choice = said["choices"][0]
        self.assertEqual(choice["message"]["role"], "assistant")
        self.assertEqual(choice["message"]["content"], ANSWER)
        self.assertEqual(choice["finish_reason"], "stop")
        usage = said["usage"]
        self.assertEqual(usage["total_tokens"], usage["prompt_tokens"] + usage["completion_tokens"])
        self.assertGreater(said["timings"]["predicted_n"], 0)

    def test_a_chat_streams(self) -> None:
        daemon = self.serve()
        answer = self.chat(daemon, stream=True, stream_options={"include_usage": True})
        self.assertEqual(answer.status, 200, answer.body)
        self.assertEqual(answer.headers.get_content_type(), "text/event-stream")
        for name, value in (("Cache-Control", "no-cache"), ("X-Accel-Buffering", "no")):
            self.assertEqual(answer.headers.get_all(name), [value])
        self.assertEqual(len(answer.headers.get_all("Content-Type")), 1)
        *pieces, usage, done = answer.events()
        self.assertEqual(done, "[DONE]")
        self.assertEqual(usage["choices"], [])
        self.assertGreater(usage["usage"]["completion_tokens"], 0)
        self.assertEqual(pieces[0]["choices"][0]["delta"]["role"], "assistant")
        self.assertEqual("".join(piece["choices"][0]["delta"].get("content", "")
                                 for piece in pieces), ANSWER)
        self.assertEqual(pieces[-1]["choices"][0]["finish_reason"], "stop")
        self.assertEqual({piece["object"] for piece in pieces}, {"chat.completion.chunk"})

    def test_completions(self) -> None:
        daemon = self.serve()
        body = {"model": "demo", "prompt": "once upon a time", "max_tokens": 4, "temperature": 0,
                "logprobs": 2}
        whole = self.post(daemon, "/v1/completions", body)
        self.assertEqual(whole.status, 200, whole.body)
        choice = whole.json()["choices"][0]
        self.assertEqual(whole.json()["object"], "text_completion")
        self.assertEqual(choice["finish_reason"], "length")
        self.assertEqual(len(choice["logprobs"]["tokens"]), 4)
        streamed = self.post(daemon, "/v1/completions", {**body, "stream": True}).events()
        self.assertEqual(streamed[-1], "[DONE]")
        self.assertEqual("".join(piece["choices"][0]["text"] for piece in streamed[:-1]),
                         choice["text"])

    def test_fields_reach_the_model(self) -> None:
        daemon = self.serve()
        stopped = self.chat(daemon, stop=[" of"]).json()["choices"][0]
        self.assertEqual(stopped["message"]["content"], ANSWER.split(" of")[0])
        self.assertEqual(stopped["finish_reason"], "stop")
        short = self.chat(daemon, max_completion_tokens=2).json()
        self.assertEqual(short["usage"]["completion_tokens"], 2)
        self.assertEqual(short["choices"][0]["finish_reason"], "length")
        told = self.chat(daemon, logprobs=True, top_logprobs=2, max_tokens=2).json()["choices"][0]
        content = told["logprobs"]["content"]
        self.assertEqual(len(content), 2)
        self.assertEqual(bytes(content[0]["bytes"]).decode(), content[0]["token"])
        self.assertEqual(len(content[0]["top_logprobs"]), 2)
        seeds = [self.chat(daemon, seed=2**40 + 7, temperature=2).json()["choices"][0]["message"]
                 for _ in range(2)]
        self.assertEqual(seeds[0], seeds[1])
        parts = [{"role": "user", "content": [{"type": "text", "text": QUESTION[:10]},
                                              {"type": "text", "text": QUESTION[10:]}]}]
        self.assertEqual(
            self.chat(daemon, messages=parts).json()["choices"][0]["message"]["content"], ANSWER)

    def test_json_schema_shapes_the_answer(self) -> None:
        daemon = self.serve()
        schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}},
                  "required": ["city"]}
        answer = self.chat(daemon, response_format={
            "type": "json_schema", "json_schema": {"name": "place", "schema": schema,
                                                   "strict": True}})
        self.assertEqual(answer.status, 200, answer.body)
        said = json.loads(answer.json()["choices"][0]["message"]["content"])
        self.assertIn(said["city"], ("Paris", "Rome"))

    def test_a_forced_call_of_a_tool(self) -> None:
        daemon = self.serve()
        tools = [{"type": "function", "function": {
            "name": "locate", "parameters": {"type": "object", "required": ["city"],
                                             "properties": {"city": {"enum": ["Paris"]}}}}}]
        members = {"tools": tools, "tool_choice": "required"}
        answer = self.chat(daemon, **members)
        self.assertEqual(answer.status, 200, answer.body)
        choice = answer.json()["choices"][0]
        self.assertEqual(choice["finish_reason"], "tool_calls")
        self.assertIsNone(choice["message"]["content"])
        call = choice["message"]["tool_calls"][0]
        self.assertEqual(call["function"]["name"], "locate")
        self.assertEqual(json.loads(call["function"]["arguments"]), {"city": "Paris"})
        pieces = self.chat(daemon, stream=True, **members).events()
        deltas = [delta for piece in pieces[:-1]
                  for delta in piece["choices"][0]["delta"].get("tool_calls", [])]
        self.assertEqual(deltas[0]["function"]["name"], "locate")
        self.assertEqual(json.loads("".join(delta["function"]["arguments"] for delta in deltas)),
                         {"city": "Paris"})

    def test_wrong_requests_name_their_field(self) -> None:
        daemon = self.serve()
        for members, param in (({"temperature": -1}, "temperature"), ({"n": 2}, "n"),
                               ({"max_tokens": 2**40}, "max_tokens"), ({"seed": 1.5}, "seed"),
                               ({"messages": [{"role": 5}]}, "messages[0].role"),
                               ({"messages": [{"role": "user", "content": [
                                   {"type": "image_url", "image_url": {"url": "x"}}]}]},
                                "messages[0].content[0].type")):
            answer = self.chat(daemon, **members)
            self.refused(answer, 400, "invalid_argument", param)
            self.assertEqual(answer.headers["x-should-retry"], "false")
        for body in (b"", b"{", b"[]", b'{"model":"caf\xe9"}', b'{"model":"\\ud800"}'):
            self.refused(self.post(daemon, "/v1/chat/completions", body), 400, "invalid_argument")
        self.assertEqual(daemon.events("load.started"), [], "nothing was loaded for that")
        # The worker's own refusals have OpenAI's names, too.
        self.refused(self.chat(daemon, messages=[{"role": "wizard", "content": "Hi"}]), 400,
                     "invalid_argument", "messages[0].role")

    def test_T93_an_overlong_prompt_is_refused_with_both_numbers(self) -> None:
        daemon = self.serve("[defaults]\ncontext = 256\n")
        for stream in (False, True):
            answer = self.post(daemon, "/v1/completions",
                               {"model": "demo", "prompt": "hello " * 1000, "stream": stream})
            error = self.refused(answer, 400, "window_exceeded")
            self.assertEqual(error["detail"]["limit"], 256)
            self.assertGreater(error["detail"]["needed"], 1000)
            self.assertIn("256", error["message"])

    def test_embeddings(self) -> None:
        daemon = self.serve('[model."vectors"]\nembeddings = true\n', models=("vectors", "demo"))
        body = {"model": "vectors", "input": ["one", "another one"]}
        numbers = self.post(daemon, "/v1/embeddings", body)
        self.assertEqual(numbers.status, 200, numbers.body)
        said = numbers.json()
        self.assertEqual((said["object"], said["model"]), ("list", "vectors"))
        self.assertEqual([one["index"] for one in said["data"]], [0, 1])
        vector = said["data"][0]["embedding"]
        self.assertAlmostEqual(sum(value * value for value in vector), 1, places=3)
        self.assertGreater(said["usage"]["prompt_tokens"], 1)
        coded = self.post(daemon, "/v1/embeddings", {**body, "encoding_format": "base64"}).json()
        raw = base64.b64decode(coded["data"][0]["embedding"])
        for value, other in zip(struct.unpack(f"<{len(vector)}f", raw), vector):
            self.assertAlmostEqual(value, other, places=5)
        short = self.post(daemon, "/v1/embeddings", {**body, "dimensions": 3}).json()
        self.assertEqual(len(short["data"][0]["embedding"]), 3)
        self.refused(self.post(daemon, "/v1/embeddings", {**body, "input": ["a", ""]}), 400,
                     "invalid_argument", "input[1]")
        self.refused(self.post(daemon, "/v1/embeddings", {**body, "model": "demo"}), 400,
                     "invalid_argument", "model")

    def test_models(self) -> None:
        daemon = self.serve('[model."demo"]\naliases = ["gpt-4o-mini"]\n')
        status, body = daemon.get("/v1/models")
        self.assertEqual(status, 200)
        listed = json.loads(body)
        self.assertEqual(listed["object"], "list")
        model = listed["data"][0]
        self.assertEqual((model["id"], model["object"], model["state"]),
                         ("demo", "model", "absent"))
        self.assertEqual(json.loads(daemon.get("/v1/models/gpt-4o-mini")[1])["id"], "demo")
        self.assertEqual(daemon.get("/v1/models/nothing")[0], 404)
        self.assertEqual(daemon.events("load.started"), [])
        self.refused(self.chat(daemon, model="nothing"), 404, "unknown_model", "model")
        self.assertEqual(self.chat(daemon, model="gpt-4o-mini").json()["model"], "demo")

    def test_T31_T35_a_client_that_leaves_ends_its_work(self) -> None:
        self.make_endless_model()
        daemon = self.serve(models=())
        connection = http.client.HTTPConnection(daemon.http, timeout=DEADLINE)
        connection.request("POST", "/v1/completions", json.dumps(
            {"model": "endless", "prompt": "once upon a time", "temperature": 0, "stream": True}),
            {"Content-Type": "application/json"})
        answer = connection.getresponse()
        while not re.match(rb"data: ", answer.readline()):
            pass
        answer.close()
        connection.close()
        daemon.wait_event("request.cancelled", model="endless")
