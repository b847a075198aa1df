"""Measures how Larder serves while the network to its upstream is bad; `make test-network` runs it.

The upstream is in a network namespace of its own. Its link goes down, swallows packets, drops some of them, and flaps; then the upstream hangs,
and fails. Meanwhile clients ask for stored responses that are stale and may be served stale. Each part prints what they waited, and what
`/upstreams` said of the state. Counts and states must be as written here. Times are compared with generous bounds only.
"""

import collections
import http.client
import itertools
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

BINARY, NEAR, FAR = sys.argv[1:4]
HERE = pathlib.Path(__file__).parent
PATIENCE = 0.3
STALL = 2.0
DOCUMENTS = 40
# How much longer than it should a machine under load may take.
MARGIN = 2.0
CONFIG = """
upstreams:
  api:
    url: http://192.0.2.2:8000
    patience: {patience}ms
    timeouts: {{ connect: 2s, first_byte: 3s, stall: {stall}s }}
listen: 127.0.0.1:0
admin: 127.0.0.1:0
""".format(patience=round(PATIENCE * 1000), stall=round(STALL))

failures = []


def expect(holds, text):
    if not holds:
        failures.append(text)
        print(f"  FAILED: {text}")


class Clients:
    """Clients that ask for one document after another; each notes the status and how long it took."""

    def __init__(self, port, count=8, pause=0.02):
        self.port, self.pause, self.results = port, pause, []
        self.numbers = itertools.count()
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while not self.over.is_set():
            begin = time.monotonic()
            connection.request("GET", f"/documents/{next(self.numbers) % DOCUMENTS}")
            response = connection.getresponse()
            response.read()
            self.results.append((response.status, time.monotonic() - begin, begin, response.headers["Cache-Status"]))
            time.sleep(self.pause)
        connection.close()

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()
        return self.results


class Watch(threading.Thread):
    """The states of the upstream, each with the time when it was first seen."""

    def __init__(self, larder):
        super().__init__(daemon=True)
        self.larder, self.states, self.is_over = larder, [], False
        self.start()

    def run(self):
        while not self.is_over:
            upstream = self.larder.admin("/upstreams")["upstreams"][0]
            state = upstream["state"], upstream["is_held_back"]
            if not self.states or self.states[-1][1] != state:
                self.states.append((time.monotonic(), state))
            time.sleep(0.05)

    def since(self, moment):
        return [(seen - moment, state) for seen, state in self.states if seen >= moment]

    def wait(self, begin, limit, wanted):
        """The seconds from `begin` until the state is a wanted one; None if it never is."""
        while time.monotonic() < begin + limit:
            if wanted(*self.states[-1][1]):
                return max(0, self.states[-1][0] - begin)
            time.sleep(0.05)


class Larder:
    def __init__(self, folder):
        (folder / "larder.yaml").write_text(CONFIG)
        self.log = folder / "log"
        arguments = ["serve", "--config", folder / "larder.yaml", "--store", folder / "larder.db"]
        self.process = subprocess.Popen([BINARY, *arguments], stderr=self.log.open("w"))
        self.port = self.find("listening on http://127.0.0.1:")
        self.admin_port = self.find("admin on http://127.0.0.1:")
        self.token = (folder / "admin.token").read_text().strip()

    def find(self, text):
        for _ in range(600):
            _, found, rest = self.log.read_text().partition(text)
            if found and "\n" in rest:
                return int("".join(itertools.takewhile(str.isdigit, rest)))
            time.sleep(0.05)
        sys.exit(f"larder did not start:\n{self.log.read_text()}")

    def admin(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.admin_port, timeout=60)
        connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
        body = connection.getresponse().read()
        connection.close()
        return json.loads(body)

    def get(self, path):
        """The status, the Cache-Status, Retry-After, and the seconds it took."""
        begin = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request("GET", path)
        response = connection.getresponse()
        try:
            response.read()
        except (http.client.IncompleteRead, ConnectionError):
            pass
        connection.close()
        return response.status, response.headers["Cache-Status"], response.headers["Retry-After"], time.monotonic() - begin


class Upstream:
    def __init__(self):
        command = ["ip", "netns", "exec", FAR, sys.executable, HERE / "origin.py", "192.0.2.2", "8000"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()

    def say(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def signal(self, number):
        self.process.send_signal(number)


def link(state):
    subprocess.run(["ip", "-n", FAR, "link", "set", "far", state], check=True)


def drop(percent):
    """Drops so many of a hundred packets that come to the upstream."""
    rules = "flush ruleset\n"
    if percent:
        chain = "type filter hook input priority 0; policy accept;"
        condition = f"numgen random mod 100 < {percent} " if percent < 100 else ""
        rules += f"table inet weather {{ chain arrival {{ {chain} {condition}drop; }}\n}}\n"
    subprocess.run(["ip", "netns", "exec", FAR, "nft", "-f", "-"], input=rules, text=True, check=True)


def describe(results):
    times = sorted(seconds for _, seconds, _, _ in results)
    late = sum(seconds > PATIENCE + 0.05 for seconds in times)
    statuses = collections.Counter(status for status, _, _, _ in results)
    kinds = collections.Counter(
        "patience" if "patience" in cache else "unreachable" if "unreachable" in cache else
        "stale" if "stale" in cache.split("detail=")[-1] else "other" for _, _, _, cache in results)
    middle, high = times[len(times) // 2], times[len(times) * 99 // 100]
    print(f"  {len(times)} requests, {dict(statuses)}; median {middle * 1000:.1f} ms, 99th percentile {high * 1000:.0f} ms, "
          f"longest {times[-1] * 1000:.0f} ms; {late} over patience + 50 ms; detail: {dict(kinds)}")
    expect(set(statuses) == {200}, "every request gets the stored response")
    expect(times[-1] < PATIENCE + MARGIN, f"no client waits much longer than patience, {PATIENCE * 1000:.0f} ms")


def part(title, begin_it, seconds, end_it, bad="unreachable", detected=6.0, back=4.0, changes=(1, 1), count=8, pause=0.02):
    """Runs clients while something is wrong, until all is well again.

    `changes` is how often the state may become bad, and `detected` and `back` how many seconds that may take; None where it need not.
    """
    print(title)
    time.sleep(1.5)
    clients = Clients(larder.port, count, pause)
    begin = time.monotonic()
    begin_it()
    noticed = watch.wait(begin, seconds if detected is None else detected + MARGIN, lambda state, _: state == bad)
    if detected is not None:
        expect(noticed is not None, f"the state is {bad} after {detected} s")
        strict = larder.get("/strict")
        print(f"  {bad} after {-1 if noticed is None else noticed:.2f} s; a response that may not be stale: {strict[0]} in "
              f"{strict[3] * 1000:.0f} ms, Retry-After: {strict[2]}")
        if bad == "unreachable":
            expect(strict[0] == 504 and strict[2], "what may not be served stale gets 504 with the time of the next attempt")
            expect(strict[3] < MARGIN, "and at once")
    time.sleep(max(0, begin + seconds - time.monotonic()))
    before = upstream_count() if bad != "hangs" else 0
    end_it()
    end = time.monotonic()
    again = watch.wait(end, back + MARGIN, lambda state, held: state == "reachable" and not held)
    if count > 8:
        time.sleep(1)
        burst = upstream_count() - before
        print(f"  {burst} requests upstream in the first seconds, by {count} clients for {DOCUMENTS} documents")
        expect(burst <= DOCUMENTS * 4, "clients that come back do not flood the upstream")
    time.sleep(2)
    describe(clients.stop())
    states = [(round(seconds, 1), *state) for seconds, state in watch.since(begin)]
    # A single request without a response makes it unreachable until the next one has a response; what counts is whether requests are held back.
    are_bad = [state == bad and (held or bad == "failing") for _, state, held in states]
    entries = sum(now and not before for before, now in itertools.pairwise([False] + are_bad))
    print(f"  well again after {-1 if again is None else again:.2f} s; states: {states}")
    expect(again is not None, f"the state is reachable {back} s after the end")
    expect(changes[0] <= entries <= changes[1], f"the state became {bad} {entries} times, not {changes[0]} to {changes[1]}")


hanging = False


def upstream_count():
    return 0 if hanging else upstream.say("count")


def hang():
    global hanging
    hanging = True
    upstream.signal(signal.SIGSTOP)


def go_on():
    global hanging
    hanging = False
    upstream.signal(signal.SIGCONT)


def flap():
    for _ in range(5):
        link("down")
        time.sleep(1)
        link("up")
        time.sleep(1)


with tempfile.TemporaryDirectory() as folder:
    upstream = Upstream()
    larder, watch = Larder(pathlib.Path(folder)), None
    try:
        for number in range(DOCUMENTS):
            larder.get(f"/documents/{number}")
        larder.get("/strict")
        watch = Watch(larder)
        print(f"patience {PATIENCE * 1000:.0f} ms; {DOCUMENTS} documents that are stale after a second")
        part("all is well", lambda: None, 3, lambda: None, detected=None, changes=(0, 0))
        part("the link goes down", lambda: link("down"), 8, lambda: link("up"))
        part("the network swallows all packets", lambda: drop(100), 10, lambda: drop(0))
        part("a third of the packets is lost", lambda: drop(33), 10, lambda: drop(0), detected=None, changes=(0, 1))
        part("the link flaps each second", flap, 10, lambda: None, detected=None, changes=(0, 5))
        part("the link comes back under load", lambda: link("down"), 6, lambda: link("up"), count=64, pause=0)
        part("the upstream hangs", hang, 10, go_on, back=17.0)
        part("the upstream responds with errors", lambda: upstream.say("fail"), 6, lambda: upstream.say("succeed"), bad="failing",
             back=6.0)
        halting = larder.get("/halting")
        print(f"a response that stops in its middle takes its client {halting[3]:.1f} s (stall: {STALL} s)")
        # libcurl looks once a second.
        expect(STALL - 0.1 < halting[3] < STALL + 2 * MARGIN, "the client of a response that has begun waits for `stall`")
        log = larder.log.read_text()
        begun = log.count("the upstream cannot be reached")
        ended = log.count("the upstream is reachable again")
        print(f"in the log: {begun} lines that the upstream cannot be reached, {ended} that it can again, "
              f"{log.count('responses fail')} and {log.count('responses succeed again')} that its responses fail and succeed")
        expect(begun == ended, "each beginning in the log has its end")
        expect(len(log.splitlines()) < 80, "the log is not flooded")
    finally:
        if watch:
            watch.is_over = True
            watch.join()
        larder.process.terminate()
        larder.process.wait()
        go_on()
        upstream.process.kill()
    if failures:
        print(larder.log.read_text() if larder.log.exists() else "")
        sys.exit(f"{len(failures)} failed")
    print("8 parts passed")
