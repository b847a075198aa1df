"""Reads of lists and details that share objects, with some writes: how much goes upstream, and how much is outdated.

One client at a time asks each cache for the same things in the same order. The origin lets everything be fresh for a
minute; what it would say itself is the truth that each response is held against.
"""
import http.client
import http.server
import json
import random
import threading
import time

ISSUES, USERS, LABELS = 80, 16, 12
FRESH = 60
WRITES = 0.05


class Tracker:
    """An origin with issues and users: lists embed what details show, and nothing says what a write invalidates."""

    def __init__(self):
        self.users = {n: {"id": n, "login": f"user{n}", "name": "v0"} for n in range(1, USERS + 1)}
        self.issues = {n: {"id": n, "title": "v0", "state": "open", "label": n % LABELS, "user": 1 + n % USERS}
                       for n in range(1, ISSUES + 1)}
        self.asked = 0
        self.lock = threading.Lock()
        tracker = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with tracker.lock:
                    tracker.asked += 1
                    body = tracker.body(self.path)
                self.respond(body)

            def do_PATCH(self):
                change = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with tracker.lock:
                    tracker.asked += 1
                    kind, number = self.path.strip("/").split("/")
                    getattr(tracker, kind)[int(number)].update(change)
                    body = tracker.body(self.path)
                self.respond(body)

            def respond(self, body):
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", "application/json")
                self.send_header("Cache-Control", f"max-age={FRESH}")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def issue(self, number):
        issue = dict(self.issues[number])
        return {**issue, "user": self.users[issue["user"]]}

    def body(self, path):
        """What the origin says now."""
        parts = path.strip("/").split("/")
        match parts:
            case ["issues", number]: found = self.issue(int(number))
            case ["users", number]: found = self.users[int(number)]
            case ["labels", label, "issues"]: found = [self.issue(n) for n, i in self.issues.items() if i["label"] == int(label)]
            case ["users", user, "issues"]: found = [self.issue(n) for n, i in self.issues.items() if i["user"] == int(user)]
            case [""]: return b"{}"
            case _: return b""
        return json.dumps(found).encode()

    def stop(self):
        self.server.shutdown()


MODELS = """
models:
  User: { identity: id, properties: { login: login, name: name } }
  Issue: { identity: id, properties: { title: title, state: state, label: label, user: { from: user, model: User } } }
routes:
  - { path: "issues/{id:#}", model: Issue }
  - { path: "users/{id:#}", model: User }
  - { path: "labels/*/issues", model: [Issue] }
  - { path: "users/*/issues", model: [Issue] }
"""

DROPS = """
routes:
  - { path: "issues/*", method: PATCH, invalidates: ["labels/*/issues", "users/*/issues"] }
  - { path: "users/*", method: PATCH, invalidates: ["labels/*/issues", "users/*/issues", "issues/*"] }
"""


def popular(draw, count):
    """A number from 1 on; the low ones come most often."""
    return 1 + min(int(draw.paretovariate(0.8)) - 1, count - 1) if draw.random() < 0.6 else draw.randint(1, count)


def steps(count):
    """What the client does: (path, None) for a read, (path, change) for a write."""
    draw = random.Random(7)
    for number in range(count):
        if draw.random() < WRITES:
            if draw.random() < 0.75:
                yield f"/issues/{popular(draw, ISSUES)}", {"title": f"v{number}"}
            else:
                yield f"/users/{popular(draw, USERS)}", {"name": f"v{number}"}
            continue
        match draw.randrange(10):
            case 0 | 1 | 2: path = f"/issues/{popular(draw, ISSUES)}"
            case 3: path = f"/users/{popular(draw, USERS)}"
            case 4 | 5 | 6 | 7: path = f"/labels/{popular(draw, LABELS) - 1}/issues"
            case _: path = f"/users/{popular(draw, USERS)}/issues"
        yield path, None


def run(tracker, port, seconds, rate):
    """Has the client do its work; gives the shares of requests that went upstream and of reads that were outdated."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    before, begun = tracker.asked, time.monotonic()
    count = reads = outdated = 0
    for number, (path, change) in enumerate(steps(seconds * rate)):
        time.sleep(max(0, begun + number / rate - time.monotonic()))
        count += 1
        if change:
            connection.request("PATCH", path, json.dumps(change), {"Content-Type": "application/json"})
            connection.getresponse().read()
            continue
        connection.request("GET", path)
        body = connection.getresponse().read()
        reads += 1
        # Nobody else changes anything.
        if json.loads(body) != json.loads(tracker.body(path)):
            outdated += 1
    connection.close()
    return {"requests": count, "upstream": (tracker.asked - before) / count, "outdated": outdated / reads}
