"""Reads of lists and details that share objects, with some writes: how much goes upstream, and how much is outdated.

One client at a time asks each cache for the same things in the same order; of several machines, each time another. The origin lets everything be fresh for some
time; what it would say itself is the truth that each response is held against. In one of the mixes the responses to writes
show nothing, in another the objects change without a write, so that a cache learns of it by its next fetch only.
"""
import http.client
import json
import random
import re
import threading
import time

from origin import Origin

ISSUES, USERS, LABELS = 80, 16, 12
FRESH = 60
WRITES = 0.05


class Mix:
    """What the clients of one mix do."""

    def __init__(self, name, writes=WRITES, changes=0.0, fresh=FRESH, shown=True, lists_only=False):
        self.name = name
        self.writes = writes
        # The share of steps at which an object changes without a write.
        self.changes = changes
        self.fresh = fresh
        # Whether the response to a write shows the object.
        self.shown = shown
        # Whether nothing but lists that share no issue is read.
        self.lists_only = lists_only


SHOWN = Mix("5 % writes")
UNSEEN = Mix("5 % writes whose responses show nothing", shown=False)
CHANGING = Mix("lists, and 5 % changes elsewhere", writes=0, changes=0.05, fresh=2, lists_only=True)


class Tracker(Origin):
    """An origin with issues and users: lists embed what details show, and nothing says what a write invalidates."""

    def __init__(self, mix=SHOWN):
        self.mix = mix
        self.users = {n: {"id": n, "login": f"user{n}", "name": "v0"} for n in range(1, USERS + 1)}
        self.issues = {n: {"id": n, "title": "v0", "state": "open", "label": n % LABELS, "user": 1 + n % USERS}
                       for n in range(1, ISSUES + 1)}
        self.asked = 0
        self.lock = threading.Lock()
        super().__init__(self.respond)

    def respond(self, method, path, sent):
        with self.lock:
            self.asked += 1
            if method == "PATCH":
                self.change(path, json.loads(sent))
            body = self.body(path)
        if method == "PATCH" and not self.mix.shown:
            return 204, [], b""
        fields = [("Content-Type", "application/json"), ("Cache-Control", f"max-age={self.mix.fresh}")]
        return 200 if body else 404, fields, body

    def change(self, path, change):
        kind, number = path.strip("/").split("/")
        getattr(self, kind)[int(number)].update(change)

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


MODELS = """
models:
  User: { identity: id, properties: { login: login, name: name } }
  Issue: { identity: id, properties: { title: title, state: state, label: label, user: { from: user, model: User } } }
routes:
  - { path: "issues/{id:#}", model: Issue, object: { id: id } }
  - { path: "users/{id:#}", model: User, object: { id: id } }
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


def steps(count, mix):
    """What happens: (path, None, False) for a read, (path, change, whether it happens elsewhere) for a write."""
    draw = random.Random(7)
    for number in range(count):
        kind = draw.random()
        if kind < mix.writes + mix.changes:
            is_elsewhere = kind >= mix.writes
            if mix.lists_only or draw.random() < 0.75:
                yield f"/issues/{popular(draw, ISSUES)}", {"title": f"v{number}"}, is_elsewhere
            else:
                yield f"/users/{popular(draw, USERS)}", {"name": f"v{number}"}, is_elsewhere
            continue
        match 4 if mix.lists_only else draw.randrange(10):
            case 0 | 1 | 2: path = f"/issues/{popular(draw, ISSUES)}"
            case 3: path = f"/users/{popular(draw, USERS)}"
            case 4 | 5 | 6 | 7: path = f"/labels/{popular(draw, LABELS) - 1}/issues"
            case _: path = f"/users/{popular(draw, USERS)}/issues"
        yield path, None, False


def versions(value, path=""):
    """The number in each member that changes, by its place: the issues of a list by their ids."""
    match value:
        case list(): return {key: found for item in value for key, found in versions(item, f"{path}/{item['id']}").items()}
        case dict(): return {key: found for name, item in value.items() for key, found in versions(item, f"{path}/{name}").items()}
        case str() if re.fullmatch(r"v\d+", value): return {path: int(value[1:])}
    return {}


def run(tracker, ports, seconds, rate):
    """Has the client do its work, each time at one of the ports; gives the shares of requests that went upstream, and of reads
    that were hits, outdated, or hits older than the last response of the same URL."""
    connections = [http.client.HTTPConnection("127.0.0.1", port, timeout=60) for port in ports]
    machines = random.Random(11)
    before, begun = tracker.asked, time.monotonic()
    count = reads = outdated = hits = older = 0
    last = {}
    for number, (path, change, is_elsewhere) in enumerate(steps(seconds * rate, tracker.mix)):
        time.sleep(max(0, begun + number / rate - time.monotonic()))
        if is_elsewhere:
            with tracker.lock:
                tracker.change(path, change)
            continue
        count += 1
        connection = machines.choice(connections)
        if change:
            connection.request("PATCH", path, json.dumps(change), {"Content-Type": "application/json"})
            connection.getresponse().read()
            continue
        connection.request("GET", path)
        response = connection.getresponse()
        body = json.loads(response.read())
        reads += 1
        shown = versions(body)
        if "; hit" in (response.getheader("Cache-Status") or "") or response.getheader("X-Cache") == "HIT":
            hits += 1
            if any(shown.get(place, 0) < version for place, version in last.get(path, {}).items()):
                older += 1
        last[path] = shown
        # Without changes elsewhere nobody else changes anything.
        if body != json.loads(tracker.body(path)):
            outdated += 1
    for connection in connections:
        connection.close()
    return {"requests": count, "upstream": (tracker.asked - before) / count, "outdated": outdated / reads,
            "hits": hits / reads, "older": older / max(hits, 1)}
