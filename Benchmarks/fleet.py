"""Several Larders that share a server of the Redis protocol: what a hit and a found response cost, how much goes upstream, and
what the server bears."""
import pathlib
import re
import secrets
import shutil
import socket
import statistics
import subprocess
import threading
import time
import urllib.request

import mix

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent / "Sources" / "Daemon" / "Fleet" / "FleetScripts.swift"


class Redis:
    """A connection to a server of the Redis protocol."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.replies = self.socket.makefile("rb")

    def __call__(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words))
        return self.reply()

    def reply(self):
        line = self.replies.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise OSError(rest.decode())
        if kind == b"$":
            return None if rest == b"-1" else self.replies.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return [self.reply() for _ in range(int(rest))]
        return rest

    def used(self):
        """Processor seconds, bytes received, and bytes sent so far."""
        info = self("INFO", "all").decode()
        number = lambda name: float(re.search(rf"^{name}:([\d.]+)", info, re.M)[1])
        return (number("used_cpu_user") + number("used_cpu_sys"), number("total_net_input_bytes"), number("total_net_output_bytes"))


class FleetBench:
    """The part `fleet` of a benchmark; it is mixed into `Bench`."""

    MACHINES = 10
    # A fleet whose load is calculated.
    RATE = 1000
    # A list of ten objects, which is some two KiB.
    LIST = 10
    LABELS = """
models: { Label: { identity: id, properties: { name: name, color: color } } }
routes: [ { path: "pages/*", model: [Label] } ]
"""

    def fleet(self):
        missing = [name for name in ("redis-server", "nginx", "wrk") if not shutil.which(name) and not pathlib.Path(f"/usr/sbin/{name}").exists()]
        if missing or not self.options.binary:
            print(f"\nFleet: left out, as there is no {', '.join(missing) or 'binary of Larder'}; scripts/dependencies bench installs what is missing")
            return
        for part in (self.fleet_hits, self.fleet_misses, self.fleet_share, self.fleet_load):
            part()
            self.stop_all()

    def stop_all(self):
        for server in reversed(self.servers):
            server.stop()
        self.servers = []

    def redis_server(self):
        port = self.free_port()
        command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--loglevel", "warning",
                   "--dir", str(self.folder)]
        server = self.start("redis", command, port, is_ready=lambda: Redis(port)("PING"))
        server.redis = Redis(port)
        return server

    def machine(self, origin, redis, config="", lag="30s"):
        """A daemon of the fleet; it has joined."""
        key = self.folder / "fleet.key"
        if not key.exists():
            key.write_text(secrets.token_hex(32) + "\n")
            key.chmod(0o600)
        fleet = f'fleet: {{ url: "redis://127.0.0.1:{redis.port}/0", key_file: {key} }}\n'
        server = self.larder(origin, fleet + config, lag=lag)
        self.until(lambda: self.metric(server, "larder_fleet_current") == 1, "a machine has not joined the fleet")
        return server

    def metric(self, server, name):
        text = urllib.request.urlopen(f"http://127.0.0.1:{server.admin}/metrics", timeout=30).read().decode()
        return sum(float(value) for value in re.findall(rf"^{name}\S* ([\d.e+-]+)$", text, re.M))

    @staticmethod
    def until(holds, failure):
        end = time.monotonic() + 60
        while not holds():
            if time.monotonic() > end:
                raise SystemExit(failure)
            time.sleep(0.02)

    # Hits

    def fleet_hits(self):
        self.pins = True
        origin, redis = self.origin(), self.redis_server()
        machines = {"alone": self.larder(origin, "workers: 1"), "in a fleet": self.machine(origin, redis, "workers: 1")}
        for server in machines.values():
            self.wrk(server, 1)
        rounds = {name: [] for name in machines}
        for number in range(self.options.rounds):
            self.progress(f"hits without and with a fleet, round {number + 1} of {self.options.rounds}")
            for name in list(machines)[::1 if number % 2 else -1]:
                rounds[name].append(self.wrk(machines[name], self.options.seconds))
        median = {name: {key: statistics.median(r[key] for r in results) for key in results[0]} for name, results in rounds.items()}
        print("\nHits without and with a fleet: 2048 bytes, 64 connections, one worker")
        for name, result in median.items():
            print(f"  {name:12}{result['rate']:12,.0f}/s{result['cpu']:10.2f} µs each, 99th percentile {result['p99']:,.0f} µs")
        self.figures.setdefault("fleet", {})["hits"] = median
        alone, together = median["alone"], median["in a fleet"]
        self.budget("fleet: CPU per hit against one alone", together["cpu"] / alone["cpu"], "<=", 1.05)

    # Misses

    def fleet_misses(self):
        """The first byte of a response that another machine has: against a `GET` of it from the server and a hit from disk."""
        self.pins = False
        for what, config in (("without objects", "workers: 1\n"), (f"with {self.LIST} objects", self.LABELS)):
            origin = self.start("origin", [self.compile("epoll"), "--pages", str(self.LIST), "Cache-Control: max-age=3600"])
            redis = self.redis_server()
            count = 1100
            disk, writer, reader = self.larder(origin, config), self.machine(origin, redis, config), self.machine(origin, redis, config)
            self.progress(f"{count:,} responses {what}, which one machine fetches for another")
            for server in (disk, writer):
                self.ask(server, range(count), threads=2)
            self.until(lambda: self.metric(writer, "larder_fleet_shared_total") >= count, "not all responses were shared")
            disk.stop()
            disk = self.restarted(disk)
            names = [name.decode() for name in redis.redis("KEYS", "larder:*:document:*")]
            lines = self.folder / "lines.txt"
            lines.write_text("".join(f"/pages/{page}\n{name}\n/pages/{page}\n/pages/{page + count}\n" for page, name in enumerate(names)))
            before = redis.redis.used()
            output = subprocess.run([self.compile("firstbyte"), f"@{lines}", str(reader.port), f"redis:{redis.port}", str(disk.port),
                                     str(origin.port)], capture_output=True, text=True, check=True).stdout
            found, get, hit, direct = (float(line.split()[1]) for line in output.splitlines())
            searches = {outcome: self.metric(reader, f'larder_fleet_searches_total{{result="{outcome}"') for outcome in ("found", "missed", "refused")}
            cpu = redis.redis.used()[0] - before[0]
            print(f"\nFirst byte of a response {what} that another machine has, one connection, {count:,} requests in turn")
            print(f"  {found:.0f} µs; GET from the server {get:.0f} µs, and hit from disk {hit:.0f} µs: {found / (get + hit):.2f} × their sum; "
                  f"the origin itself, which is on this machine, {direct:.0f} µs")
            print(f"  {searches}; processor of the server, the GETs included, {cpu / count * 1e6:.0f} µs for each")
            self.figures.setdefault("fleet", {}).setdefault("misses", {})[what] = {"found": found, "get": get, "disk": hit, "direct": direct, "searches": searches}
            self.budget(f"fleet: first byte {what} against GET and disk", found / (get + hit), "<=", 1.5)
            self.stop_all()

    def restarted(self, server):
        """The same daemon again, with nothing in memory."""
        again = self.start("larder", server.process.args, server.port, is_ready=lambda: urllib.request.urlopen(
            f"http://127.0.0.1:{server.admin}/readyz", timeout=5).status == 200)
        again.admin = server.admin
        return again

    # The share that goes upstream

    def fleet_share(self):
        self.pins = False
        seconds, rate, kind = self.options.mix, 25, mix.SHOWN
        config = "workers: 1\n" + mix.MODELS
        redis = self.redis_server()
        makers = {
            "one Larder": lambda origin: [self.larder(origin, config)],
            f"{self.MACHINES} Larders": lambda origin: [self.machine(origin, redis, config) for _ in range(self.MACHINES)],
            "one nginx": lambda origin: [self.nginx(origin)],
            "3 nginx, nothing shared": lambda origin: [self.nginx(origin, f"nginx{number}") for number in range(3)],
        }
        trackers = {name: mix.Tracker(kind) for name in makers}
        servers = {name: maker(trackers[name]) for name, maker in makers.items()}
        self.progress(f"lists and details that share objects for {seconds} s, each step at another machine: " + "; ".join(makers))
        results = {}
        clients = [threading.Thread(target=lambda name: results.__setitem__(
            name, mix.run(trackers[name], [server.port for server in servers[name]], seconds, rate)), args=(name,)) for name in makers]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        print(f"\nThe same load at one machine and at several, {kind.name}, fresh for {kind.fresh} s: {seconds * rate:,} steps in {seconds} s")
        print(f"  {'':26}{'went upstream':>15}{'hits':>12}{'outdated':>12}")
        for name, found in results.items():
            print(f"  {name:26}{found['upstream']:15.1%}{found['hits']:12.1%}{found['outdated']:12.1%}")
        fleet = servers[f"{self.MACHINES} Larders"]
        delays = [self.metric(server, "larder_fleet_delay_seconds_sum") / max(1, self.metric(server, "larder_fleet_delay_seconds_count"))
                  for server in fleet]
        searches = {outcome: sum(self.metric(server, f'larder_fleet_searches_total{{result="{outcome}"') for server in fleet)
                    for outcome in ("found", "missed", "refused")}
        print(f"  the fleet's responses of others: {searches}; news behind by {statistics.mean(delays) * 1e3:.1f} ms")
        for tracker in trackers.values():
            tracker.stop()
        self.figures.setdefault("fleet", {})["share"] = results
        one, many = results["one Larder"], results[f"{self.MACHINES} Larders"]
        self.budget(f"fleet: {self.MACHINES} machines' requests upstream against one's", many["upstream"] / one["upstream"], "<=", 1.3)

    # What the server bears

    def fleet_load(self):
        origin = self.start("origin", [self.compile("epoll"), "--pages", "1", "Cache-Control: max-age=3600"])
        redis = self.redis_server()
        sizes, patch, applied = self.writes_of_a_daemon(origin, redis)
        script = self.folder / "announce.lua"
        script.write_text(re.search(r'case announce = """\n(.*?)"""', SCRIPTS.read_text(), re.S)[1])
        program, length = self.compile("fleetload", "-lhiredis", "-lpthread"), ",".join(map(str, sizes))
        each = " and ".join(map(str, sizes))

        def load(machines, rate, seconds=3):
            before = redis.redis.used()
            output = subprocess.run([program, str(redis.port), str(script), length, str(machines), str(rate), str(seconds)], capture_output=True,
                                    text=True, check=True).stdout
            cpu, received, sent = (after - former for after, former in zip(redis.redis.used(), before))
            writes, entries, median, late = (float(value) for value in output.split())
            return {"machines": machines, "asked": rate, "writes": writes, "read": entries / len(sizes), "cpu": cpu / seconds, "received": received / seconds,
                    "sent": sent / seconds, "delay": median, "late": late}

        self.progress(f"the server under the news of 1 to 20 machines; a write is {len(sizes)} entries of {each} bytes")
        print(f"\nThe server under the news of writes, each {len(sizes)} entries of {each} bytes; with {self.RATE:,} a second the median of three")
        print(f"  {'machines':>10}{'writes/s':>12}{'read/s':>10}{'CPU':>8}{'received MB/s':>15}{'sent MB/s':>12}{'delay ms':>11}{'99th':>8}")
        rows = []
        plan = [(machines, self.RATE) for machines in (1, 5, self.MACHINES, 20)]
        measured = [[load(*step) for step in plan] for _ in range(3)]
        rows = [{key: statistics.median(row[key] for row in column) for key in column[0]} for column in zip(*measured)]
        rows += [load(self.MACHINES, rate) for rate in (2000, 4000, 8000, 16000)]
        for row in rows:
            machines = row["machines"]
            print(f"  {machines:10}{row['writes']:12,.0f}{row['read']:10,.0f}{row['cpu']:8.0%}{row['received'] / 1e6:15.2f}{row['sent'] / 1e6:12.2f}"
                  f"{row['delay']:11.1f}{row['late']:8.1f}")
        at = {row["machines"]: row for row in rows if row["asked"] == self.RATE}
        few, many = at[1], at[20]
        memory = int(redis.redis("MEMORY", "USAGE", "larder:load:1:news", "SAMPLES", 0))
        most = max((row for row in rows if row["machines"] == self.MACHINES), key=lambda row: min(row["writes"], row["read"]))
        print(f"  a write costs the server {few['cpu'] / few['writes'] * 1e6:.0f} µs with one machine, {many['cpu'] / many['writes'] * 1e6:.0f} µs with 20; "
              f"it receives {few['received'] / few['writes']:,.0f} bytes, and sends {many['sent'] / many['writes'] / 20:,.0f} to each machine; "
              f"the stream has {memory / 2**20:.0f} MiB")
        print(f"  with {self.MACHINES} machines it takes {min(most['writes'], most['read']):,.0f} writes/s")
        print(f"  a daemon applies {applied:,.0f} writes/s of others, and sends {patch:,.0f}/s of its own to an origin on this machine")
        self.figures.setdefault("fleet", {})["load"] = {"entries": sizes, "rows": rows, "streamBytes": memory, "applied": applied, "patches": patch}
        self.budget("fleet: writes/s of others that one machine applies", applied, ">=", self.RATE)

    def writes_of_a_daemon(self, origin, redis):
        """The lengths of the entries of one write; how many writes a second a daemon sends, and how many of others it applies."""
        self.pins = False
        config = "workers: 1\n" + self.LABELS
        writer, reader = self.machine(origin, redis, config), self.machine(origin, redis, config)
        for server in (writer, reader):
            self.ask(server, range(500))
        stream = next(name for name in redis.redis("KEYS", "larder:*:news"))
        self.until(lambda: self.metric(reader, "larder_ingest_queue") == 0 and self.metric(writer, "larder_fleet_queue") == 0, "the daemons are not done")
        time.sleep(0.5)
        before = int(redis.redis("XLEN", stream))
        urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{writer.port}/pages/7", b"{}", method="PATCH"), timeout=30).read()
        time.sleep(0.5)
        entries = redis.redis("XREVRANGE", stream, "+", "-", "COUNT", int(redis.redis("XLEN", stream)) - before)
        sizes = [len(fields[3]) for _, fields in reversed(entries)]
        script = self.folder / "patch.lua"
        script.write_text('local n = 0\nrequest = function() n = n + 1; return wrk.format("PATCH", "/pages/" .. n % 500, nil, "{}") end\n')
        # What the reader misses meanwhile, it applies as fast as it can.
        reader.stop()
        self.progress("writes through one machine, which another applies when it is back")
        patch = self.wrk(writer, self.options.seconds, 16, str(script))["rate"]
        announced = self.metric(writer, "larder_fleet_announced_total")
        reader = self.restarted(reader)
        self.until(lambda: self.metric(reader, "larder_fleet_applied_total") > 0, "nothing is applied")
        begun, first = time.monotonic(), self.metric(reader, "larder_fleet_applied_total")
        self.until(lambda: self.metric(reader, "larder_fleet_current") == 1, "the machine does not catch up")
        last = self.metric(reader, "larder_fleet_applied_total")
        return sizes, patch, (last - first) / len(sizes) / max(time.monotonic() - begun, 1e-9)
