"""What the same recorded responses take on disk: in Larder's file with and without models, nginx's cache, requests-cache."""
import gzip
import json
import pathlib
import shutil
import subprocess
import sys
import urllib.error
import urllib.request

from origin import Origin

# Asks for each path that it reads, through a session with a cache.
ASK = """
import sys, requests_cache
session = requests_cache.CachedSession(sys.argv[1], backend="sqlite", expire_after=86400)
for path in sys.stdin.read().splitlines():
    session.get(sys.argv[2] + path)
"""


class RecordedOrigin(Origin):
    """Serves the newest recorded response of each path."""

    def __init__(self, corpus):
        self.responses = {}
        with gzip.open(corpus, "rt") as lines:
            for line in map(json.loads, lines):
                body = line.get("body")
                if line["status"] == 200 and isinstance(body, str) and body:
                    self.responses[line["path"]] = (line.get("headers") or [], body.encode())
        super().__init__(self.respond)

    def respond(self, method, path, sent):
        recorded, body = self.responses.get(path, ([], b"{}"))
        # The rest is as recorded, so that each cache stores the same fields.
        left_out = ("transfer-encoding", "content-encoding", "content-length", "connection", "cache-control", "vary", "set-cookie", "date",
                    "expires", "age")
        fields = [(name, value) for name, value in recorded if name.lower() not in left_out]
        if not any(name.lower() == "content-type" for name, _ in fields):
            fields.append(("Content-Type", "application/json"))
        return 200, [*fields, ("Cache-Control", "max-age=86400")], body


class SizeBench:
    def sizes(self):
        if not self.options.recorded:
            return
        print("\nSize on disk of the same recorded responses, in MB")
        total = {}
        for corpus, preset in self.options.recorded:
            origin = RecordedOrigin(corpus)
            try:
                sizes = self.sizes_of(origin, preset, pathlib.Path(corpus).name.partition(".")[0])
            finally:
                origin.stop()
            bodies = sum(len(body) for _, body in origin.responses.values())
            print(f"  {preset}: {len(origin.responses):,} responses, {bodies / 1e6:.2f} of bodies: "
                  + ", ".join(f"{name} {size / 1e6:.2f}" for name, size in sizes.items()))
            for name, size in sizes.items():
                total[name] = total.get(name, 0) + size
        self.figures["sizes"] = total
        others = [size for name, size in total.items() if not name.startswith("Larder")]
        for name in [name for name in total if name.startswith("Larder")]:
            self.budget(f"{name} against the smallest of the others", total[name] / min(others), "<=", 1)

    def sizes_of(self, origin, preset, corpus):
        sizes = {}
        config = pathlib.Path(__file__).resolve().parent.parent / "config" / f"{preset}.yaml"
        base = self.preset(preset)[1]
        for name, arguments in (("Larder", []), ("Larder with models", ["--config", str(config)])):
            if not self.options.binary:
                continue
            self.progress(f"{preset}: {name}")
            port, admin = self.free_port(), self.free_port()
            store = self.folder / f"size-{corpus}-{len(sizes)}.db"
            server = self.start("larder", [self.options.binary, "serve", *arguments, "--upstream", f"http://127.0.0.1:{origin.port}{base}",
                                           "--listen", f"127.0.0.1:{port}", "--admin", f"127.0.0.1:{admin}", "--store", str(store)], port)
            self.ask_all(server.port, origin, base)
            server.stop()
            sizes[name] = sum(file.stat().st_size for file in self.folder.glob(f"{store.name}*"))
        self.progress(f"{preset}: nginx")
        server = self.nginx(origin, f"nginx-{corpus}")
        self.ask_all(server.port, origin)
        server.stop()
        cache = self.folder / f"nginx-{corpus}" / "cache"
        sizes["nginx"] = sum(file.stat().st_size for file in cache.rglob("*") if file.is_file())
        shutil.rmtree(cache)
        if subprocess.run([sys.executable, "-c", "from requests_cache import CachedSession"], capture_output=True).returncode == 0:
            self.progress(f"{preset}: requests-cache")
            file = self.folder / f"requests-{corpus}.sqlite"
            subprocess.run([sys.executable, "-c", ASK, str(file), f"http://127.0.0.1:{origin.port}"], check=True, text=True,
                           input="\n".join(origin.responses))
            sizes["requests-cache"] = file.stat().st_size
        else:
            print("  requests-cache is left out: this Python does not have it (pip install requests-cache)")
        return sizes

    def ask_all(self, port, origin, base=""):
        for path in origin.responses:
            path = path.removeprefix(base)
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30).read()
            except urllib.error.HTTPError as error:
                raise SystemExit(f"{path}: {error}") from None
