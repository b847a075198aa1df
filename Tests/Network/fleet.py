"""Three machines of a fleet, their server and an origin, each in a network namespace of its own; `make test-network` runs it.

Clients of two principals read and write through all machines, and move between them. Meanwhile packets between each machine and the
server, and between each machine and the origin, are lost: those that come, those that go, a third of both, and all while the link is down.
No client may get what is another principal's, or was never true; one that sends back `Larder-Position` must see what it has written, and
nothing older than it has seen. In the end all machines must serve the truth.
"""

import ctypes
import http.client
import http.server
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

BINARY, SERVER, ORIGIN, *MACHINES = sys.argv[1:]
SERVER_ADDRESS, ORIGIN_ADDRESS = "192.0.2.10", "192.0.2.20"
ITEMS, PRINCIPALS = range(1, 5), ("ada", "bela")
# How long each trouble lasts, in seconds: longer than the limits of a request and of the connection to the server.
SECONDS = 3
CONFIG = """
upstreams:
  api:
    url: http://{origin}:8000
    lag: 0s
    timeouts: {{ connect: 1s, first_byte: 2s, stall: 2s }}
    models: {{ Item: {{ identity: id, properties: {{ text: text }} }} }}
    routes:
      - {{ path: items, model: [Item] }}
      - {{ path: "items/{{id:#}}", model: Item, object: {{ id: id }} }}
fleet: {{ url: "redis://{server}:6379/0", key_file: {key} }}
listen: 127.0.0.1:0
admin: 127.0.0.1:0
"""
libc = ctypes.CDLL(None, use_errno=True)
failures = []


def fail(text):
    failures.append(text)
    print(f"  FAILED: {text}")


def enter(namespace):
    """Has the calling thread make its sockets in a network namespace."""
    with open(f"/run/netns/{namespace}") as file:
        if libc.setns(file.fileno(), 0x40000000):
            raise OSError(ctypes.get_errno(), "setns")


class Truth:
    """What is true of each principal's items: numbers that grow."""

    def __init__(self):
        self.lock, self.numbers, self.written = threading.Lock(), {}, {}

    def change(self, principal, item, write=None):
        with self.lock:
            self.numbers[principal, item] = self.numbers.get((principal, item), 0) + 1
            if write:
                self.written[write] = self.numbers[principal, item]

    def json(self, principal, item):
        return {"id": item, "text": f"{principal}-{item}-{self.numbers.get((principal, item), 0)}"}

    def shown(self, body, principal):
        """The numbers in a response; None if it shows what was never true for its principal."""
        shown = {}
        for value in body if isinstance(body, list) else [body]:
            name, item, number = value["text"].split("-")
            if name != principal or int(item) != value["id"] or int(number) > self.numbers.get((principal, int(item)), 0):
                return None
            shown[int(item)] = int(number)
        return shown


truth = Truth()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def respond(self, status, value=None):
        body = b"" if value is None else json.dumps(value).encode()
        self.send_response_only(status)
        self.send_header("Cache-Control", "max-age=3600")
        if value is not None:
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def who(self):
        time.sleep(random.random() / 100)
        last = self.path.split("/")[-1]
        return self.headers["Authorization"].split()[-1], int(last) if last.isdigit() else None

    def do_GET(self):
        principal, item = self.who()
        self.respond(200, truth.json(principal, item) if item else [truth.json(principal, item) for item in ITEMS])

    def do_PATCH(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        principal, item = self.who()
        truth.change(principal, item, self.headers["X-Write"])
        if random.random() < 0.5:
            self.respond(204)
        else:
            self.respond(200, truth.json(principal, item))


class Origin(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, *_):
        pass


class Machine:
    def __init__(self, namespace, folder):
        self.namespace, self.log = namespace, folder / f"{namespace}.log"
        config = folder / f"{namespace}.yaml"
        config.write_text(CONFIG.format(origin=ORIGIN_ADDRESS, server=SERVER_ADDRESS, key=folder / "fleet.key"))
        arguments = [BINARY, "serve", "--config", config, "--store", folder / f"{namespace}.db"]
        self.process = subprocess.Popen(["ip", "netns", "exec", namespace, *arguments], stderr=self.log.open("w"))
        for _ in range(600):
            _, found, rest = self.log.read_text().partition("listening on http://127.0.0.1:")
            if found and "\n" in rest:
                self.port = int("".join(itertools.takewhile(str.isdigit, rest)))
                return
            time.sleep(0.05)
        sys.exit(f"larder did not start:\n{self.log.read_text()}")

    def ask(self, method, path, principal, **fields):
        enter(self.namespace)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        fields = {name.replace("_", "-"): value for name, value in fields.items()}
        connection.request(method, path, "{}" if method == "PATCH" else None, {"Authorization": f"Bearer {principal}", **fields})
        response = connection.getresponse()
        body = response.read()
        connection.close()
        return response, json.loads(body) if body else None


class Client(threading.Thread):
    """A client that moves between the machines, and sends back positions or does not."""

    count = itertools.count()
    over = threading.Event()

    def __init__(self, principal, sends_positions):
        super().__init__()
        self.principal, self.sends_positions, self.position, self.floor = principal, sends_positions, "", {}
        self.statuses, self.hits = [], 0
        self.start()

    def run(self):
        while not self.over.is_set():
            self.step(f"step {next(self.count)}")

    def step(self, name):
        machine, item = random.choice(machines), random.choice(ITEMS)
        if random.random() < 0.1:
            return truth.change(self.principal, item)
        fields = {"Larder_Position": self.position} if self.sends_positions else {}
        if random.random() < 0.2:
            response, _ = machine.ask("PATCH", f"/items/{item}", self.principal, X_Write=name, **fields)
            if response.status in (200, 204):
                self.note({item: truth.written[name]}, response)
            return
        path = random.choice([f"/items/{item}", f"/items/{item}", "/items"])
        least = dict(self.floor)
        response, body = machine.ask("GET", path, self.principal, **fields)
        status = response.headers["Cache-Status"]
        self.statuses.append(response.status)
        if response.status != 200:
            if response.status not in (502, 504):
                fail(f"{name}: {response.status} {body}")
            return
        self.hits += "hit" in status
        shown = truth.shown(body, self.principal)
        if shown is None:
            return fail(f"{name}: {self.principal} {path} of {machine.namespace}: {body}")
        if "doubt" in status:
            return
        for item, number in shown.items():
            if number < least.get(item, 0):
                fail(f"{name}: {self.principal} {path} of {machine.namespace} from {self.position}, {status}: {body}; seen before: {least}")
        self.note(shown, response)

    def note(self, shown, response):
        position = response.headers["Larder-Position"]
        if self.sends_positions and position:
            self.position = position
            for item, number in shown.items():
                self.floor[item] = max(self.floor.get(item, 0), number)


def lose(machine, address, kind):
    """Loses packets between a machine and an address; `None` loses none any more."""
    subprocess.run(["ip", "-n", machine.namespace, "link", "set", "near", "down" if kind == "link" else "up"], check=True)
    rules = "flush ruleset\n"
    if kind and kind != "link":
        condition = "numgen random mod 100 < 33 " if kind == "third" else ""
        for hook, name in (("input", "saddr"), ("output", "daddr")):
            if kind in (hook, "third"):
                rules += f"table inet {hook} {{ chain c {{ type filter hook {hook} priority 0; ip {name} {address} {condition}drop; }}\n}}\n"
    subprocess.run(["ip", "netns", "exec", machine.namespace, "nft", "-f", "-"], input=rules, text=True, check=True)


def eventually(condition, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False


def is_connected(machine):
    return machine.ask("GET", "/items", "ada", Larder_Position="")[0].headers["Larder-Position"] is not None


def serves_truth(machine, principal, path):
    response, body = machine.ask("GET", path, principal)
    shown = truth.shown(body, principal) if response.status == 200 else None
    return shown is not None and all(number == truth.numbers.get((principal, item), 0) for item, number in shown.items())


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "fleet.key").write_text("0123456789abcdef" * 4 + "\n")
    (folder / "fleet.key").chmod(0o600)
    command = ["ip", "netns", "exec", SERVER, "redis-server", "--bind", SERVER_ADDRESS, "--protected-mode", "no", "--save", ""]
    redis = subprocess.Popen([*command, "--dir", folder], stdout=subprocess.DEVNULL)
    machines = []
    try:
        enter(ORIGIN)
        threading.Thread(target=Origin((ORIGIN_ADDRESS, 8000), Handler).serve_forever, daemon=True).start()
        for namespace in MACHINES:
            machines.append(Machine(namespace, folder))
        for machine in machines:
            if not eventually(lambda: is_connected(machine)):
                sys.exit(f"{machine.namespace} does not reach the server:\n{machine.log.read_text()}")
        clients = [Client(principal, number < 2) for principal in PRINCIPALS for number in range(3)]
        time.sleep(SECONDS)
        for place, address in ("server", SERVER_ADDRESS), ("origin", ORIGIN_ADDRESS):
            for kind in "input", "output", "third", "link":
                for machine in machines:
                    before = sum(len(client.statuses) for client in clients)
                    lose(machine, address, kind)
                    time.sleep(SECONDS)
                    lose(machine, address, None)
                    time.sleep(SECONDS / 3)
                    print(f"{machine.namespace} and the {place}, {kind}: {sum(len(client.statuses) for client in clients) - before} reads")
        Client.over.set()
        for client in clients:
            client.join()
        for machine in machines:
            if not eventually(lambda: is_connected(machine)):
                fail(f"{machine.namespace} does not reach the server again")
        for principal, item in itertools.product(PRINCIPALS, ITEMS):
            machine = random.choice(machines)
            if not eventually(lambda: machine.ask("PATCH", f"/items/{item}", principal)[0].status in (200, 204)):
                fail(f"{machine.namespace} does not reach the origin again")
        for machine, principal, path in itertools.product(machines, PRINCIPALS, ["/items"] + [f"/items/{item}" for item in ITEMS]):
            if not eventually(lambda: serves_truth(machine, principal, path)):
                fail(f"{machine.namespace} does not serve {principal} the truth of {path}: {machine.ask('GET', path, principal)}")
        statuses = [status for client in clients for status in client.statuses]
        print(f"{len(statuses)} reads: {sum(client.hits for client in clients)} hits, {len(statuses) - statuses.count(200)} errors")
    finally:
        Client.over.set()
        for machine in machines:
            machine.process.terminate()
            machine.process.wait()
        redis.terminate()
        redis.wait()
    if failures:
        for machine in machines:
            print(machine.log.read_text())
        sys.exit(f"{len(failures)} failed")
    print("the fleet has kept what it promises")
