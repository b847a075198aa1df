#!/usr/bin/env python3
"""A small REST API of a blog, to try Larder on without a network. Python's standard library only.

    config/sample-api.py --port 9000        port 0 takes a free one; the address is printed

    GET    /users  /posts  /tags            lists: ?page=2&per_page=10, Link: rel="next"; /posts?author=3&tag=swift
    GET    /users/3  /posts/7  /comments/9  /tags/swift
    GET    /users/3/posts  /posts/7/comments  /search/posts?q=cache
    POST   /users  /posts  /posts/7/comments
    PUT, PATCH, DELETE on a single user, post or comment

Lists and details show the same objects in different shapes: a post in a list carries its author in short, the post itself
carries it in full. Every answer has an ETag, a Last-Modified date and Cache-Control; conditions are honoured on reads and
writes. The data is made anew, the same each time, at every start. `--latency MS` answers that much later, `--max-age S`
sets the freshness.
"""
import argparse
import hashlib
import json
import random
import re
import sys
import threading
import time
from datetime import datetime, timedelta, timezone
from email.utils import formatdate, parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

GIVEN = ["Ada", "Bela", "Carmen", "Dmitri", "Elif", "Farid", "Greta", "Hiro", "Ines", "Jonas", "Kavya", "Lars", "Mina",
         "Noor", "Olga", "Pavel", "Quentin", "Rosa", "Sven", "Tomoko", "Uma", "Viktor", "Wanda", "Ximena", "Yusuf", "Zoë"]
FAMILY = ["Lindqvist", "Bartók", "Reyes", "Volkov", "Demir", "Haddad", "Nilsson", "Tanaka", "Duarte", "Weber", "Rao",
          "Jensen", "Park", "Rahman", "Ivanova", "Novák", "Moreau", "Conti", "Berg", "Sato", "Menon", "Hugo", "Nowak",
          "Castillo", "Aydın", "Keller"]
PLACES = ["Malmö", "Budapest", "Sevilla", "Tallinn", "İzmir", "Amman", "Leipzig", "Kyoto", "Porto", "Graz", "Pune", "Odense"]
TRADES = ["writes about databases", "keeps bees and servers", "mends bicycles", "draws maps", "teaches physics",
          "restores pianos", "bakes rye bread", "runs a small library", "translates poems", "studies rivers"]
TAGS = {"swift": "Swift", "databases": "Databases", "caching": "Caching", "gardening": "Gardening", "music": "Music",
        "maps": "Maps", "bread": "Bread", "cycling": "Cycling", "rivers": "Rivers", "books": "Books", "physics": "Physics",
        "travel": "Travel"}
SUBJECTS = ["a cache that tells the truth", "the rivers of the north", "rye bread without hurry", "an old upright piano",
            "maps nobody asked for", "the second law", "bees in a cold spring", "a bicycle from 1962", "reading aloud",
            "one table, many shapes", "a library in a village", "the night train", "compost", "small servers"]
OPENINGS = ["Notes on", "Against", "In praise of", "A year with", "What I got wrong about", "Ten minutes on", "Returning to"]
SENTENCES = [
    "It took three attempts before it worked, and the third was the simplest.",
    "Nobody had looked at it since the summer, which turned out to be the problem.",
    "The first rule is to measure; the second is to believe the measurement.",
    "I still do not know why the older one is faster.",
    "My neighbour said it would never hold, and she was almost right.",
    "There is a drawing in the margin that explains it better than I can.",
    "If you only read one page of the manual, read the one about failure.",
    "We left at five, because the light is best before the wind comes up.",
    "The answer was in a letter from 1911, in handwriting that slopes to the left.",
    "Patience is cheaper than tools, though I own too many of both.",
    "What looked like noise was the signal of somebody else's clock.",
    "In the end I kept the smaller one and gave the other away.",
]
REMARKS = [
    "Thank you, this is exactly what I needed today.", "I tried this and it works, but only with the window open.",
    "Have you compared it with last year's?", "My grandmother did it the other way round.",
    "The link in the third paragraph is dead.", "Agreed, except for the last sentence.", "Could you share the drawing?",
    "I read this aloud at breakfast.", "Is there a version for left-handed people?", "This aged well.",
]
EPOCH = datetime(2024, 3, 1, 8, 0, tzinfo=timezone.utc)


def stamp(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class Blog:
    """The data: plain rows by id, and the shapes they are shown in. Guarded by `lock`."""

    def __init__(self):
        self.lock = threading.RLock()
        chance = random.Random(2187)
        self.users, self.posts, self.comments = {}, {}, {}
        # When anything last changed: a list may change although none of the rows it shows says so.
        self.changed = EPOCH + timedelta(days=300)
        for number in range(1, 25):
            given, family = GIVEN[number - 1], FAMILY[(number * 7) % len(FAMILY)]
            login = re.sub(r"[^a-z]", "", f"{given}{family[0]}".lower().replace("ë", "e").replace("á", "a"))
            self.users[number] = {
                "id": number, "login": f"{login}{number}", "name": f"{given} {family}", "email": f"{login}{number}@example.org",
                "place": chance.choice(PLACES), "bio": f"{given} {chance.choice(TRADES)} and {chance.choice(TRADES)}.",
                "avatar_url": f"https://example.org/avatars/{number}.png",
                "created_at": stamp(EPOCH + timedelta(hours=number * 31)), "updated_at": stamp(EPOCH + timedelta(days=200 + number)),
            }
        for number in range(1, 121):
            created = EPOCH + timedelta(hours=40 * number + chance.randrange(30))
            self.posts[number] = {
                "id": number, "title": f"{chance.choice(OPENINGS)} {chance.choice(SUBJECTS)}",
                "body": " ".join(chance.sample(SENTENCES, 6)), "author": chance.randrange(1, 25),
                "tags": chance.sample(sorted(TAGS), chance.randrange(1, 4)), "likes": chance.randrange(400),
                "created_at": stamp(created), "updated_at": stamp(created + timedelta(hours=chance.randrange(200))),
            }
        for number in range(1, 361):
            created = EPOCH + timedelta(days=210, minutes=97 * number)
            self.comments[number] = {
                "id": number, "post": chance.randrange(1, 121), "author": chance.randrange(1, 25), "body": chance.choice(REMARKS),
                "created_at": stamp(created), "updated_at": stamp(created),
            }

    # The shapes

    def user_in_short(self, number):
        user = self.users.get(number)
        return {k: user[k] for k in ("id", "login", "name", "avatar_url")} if user else None

    def user(self, number):
        posts = [post for post in self.posts.values() if post["author"] == number]
        return {**self.users[number], "posts_count": len(posts)}

    def tag(self, name, full=False):
        tag = {"slug": name, "name": TAGS[name]}
        if full:
            tag["posts_count"] = sum(name in post["tags"] for post in self.posts.values())
        return tag

    def post(self, number, full=False):
        post = self.posts[number]
        shown = {"id": number, "title": post["title"], "likes": post["likes"], "created_at": post["created_at"],
                 "updated_at": post["updated_at"], "author": self.user_in_short(post["author"]),
                 "tags": [self.tag(name) for name in post["tags"]],
                 "comments_count": sum(comment["post"] == number for comment in self.comments.values())}
        if full:
            shown["body"] = post["body"]
            if post["author"] in self.users:
                shown["author"] = self.user(post["author"])
        return shown

    def comment(self, number):
        comment = self.comments[number]
        return {**comment, "author": self.user_in_short(comment["author"])}


class Problem(Exception):
    def __init__(self, status, detail):
        self.status, self.detail = status, detail


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "sample-api", ""
    disable_nagle_algorithm = True
    # The head and the body leave together.
    wbufsize = 65536

    def log_message(self, *arguments):
        if self.server.options.verbose:
            super().log_message(*arguments)

    def do_GET(self):
        self.handle_request()

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def handle_request(self):
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        time.sleep(self.server.options.latency / 1000)
        url = urlsplit(self.path)
        self.query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        self.extra = {}
        parts = [part for part in url.path.split("/") if part]
        reading = self.command in ("GET", "HEAD")
        try:
            with self.server.blog.lock:
                status, body = self.route(parts, raw)
                if not reading:
                    self.server.blog.changed = datetime.now(timezone.utc)
                self.answer(status, body)
        except Problem as problem:
            self.answer(problem.status, {"title": self.responses[problem.status][0], "status": problem.status,
                                         "detail": problem.detail}, "application/problem+json")

    # Which path means what

    def route(self, parts, raw):
        blog, reading = self.server.blog, self.command in ("GET", "HEAD")
        match parts:
            case [] if reading:
                return 200, {"users": "/users", "posts": "/posts", "tags": "/tags", "search": "/search/posts?q="}
            case ["users"] if reading:
                return 200, [blog.user_in_short(number) for number in self.page(sorted(blog.users))]
            case ["users"] if self.command == "POST":
                return self.create(blog.users, "users", blog.user, self.members(raw, "login", "name"))
            case ["users", number]:
                return self.single(blog.users, number, blog.user, raw)
            case ["users", number, "posts"] if reading:
                number = self.existing(blog.users, number)
                return 200, [blog.post(post) for post in self.page(self.newest(author=number))]
            case ["posts"] if reading:
                author = int(self.query["author"]) if self.query.get("author", "").isdigit() else None
                return 200, [blog.post(post) for post in self.page(self.newest(author, self.query.get("tag")))]
            case ["posts"] if self.command == "POST":
                members = {"tags": [], "likes": 0, **self.members(raw, "title", "body", "author")}
                return self.create(blog.posts, "posts", lambda number: blog.post(number, True), members)
            case ["posts", number]:
                return self.single(blog.posts, number, lambda number: blog.post(number, True), raw)
            case ["posts", number, "comments"]:
                number = self.existing(blog.posts, number)
                if reading:
                    found = [comment for comment, row in sorted(blog.comments.items()) if row["post"] == number]
                    return 200, [blog.comment(comment) for comment in self.page(found)]
                if self.command == "POST":
                    members = {**self.members(raw, "body", "author"), "post": number}
                    return self.create(blog.comments, "comments", blog.comment, members)
            case ["comments", number]:
                return self.single(blog.comments, number, blog.comment, raw)
            case ["tags"] if reading:
                return 200, [blog.tag(name, True) for name in sorted(TAGS)]
            case ["tags", name] if reading and name in TAGS:
                return 200, blog.tag(name, True)
            case ["search", "posts"] if reading:
                words = self.query.get("q", "").lower()
                found = [n for n in self.newest() if words in (blog.posts[n]["title"] + blog.posts[n]["body"]).lower()]
                return 200, {"total_count": len(found), "items": [blog.post(number) for number in self.page(found)]}
        if parts and parts[0] in ("users", "posts", "comments", "tags", "search") and len(parts) < 4 and not reading:
            raise Problem(405, f"{self.command} is not possible here.")
        raise Problem(404, f"There is nothing at {self.path}.")

    def single(self, rows, number, show, raw):
        number = self.existing(rows, number)
        if self.command in ("GET", "HEAD"):
            return 200, show(number)
        self.check_conditions(show(number))
        if self.command == "DELETE":
            del rows[number]
            return 204, None
        row, members = rows[number], self.members(raw)
        if self.command == "PUT":
            missing = [name for name in row if name not in members and name not in ("id", "created_at", "updated_at", "likes")]
            if missing:
                raise Problem(422, f"PUT needs every member; {', '.join(missing)} is missing.")
        elif self.command != "PATCH":
            raise Problem(405, f"{self.command} is not possible here.")
        row.update({name: value for name, value in members.items() if name in row and name not in ("id", "created_at")})
        row["updated_at"] = stamp(datetime.now(timezone.utc))
        return 200, show(number)

    def create(self, rows, collection, show, members):
        number, now = max(rows, default=0) + 1, stamp(datetime.now(timezone.utc))
        defaults = {"email": None, "place": None, "bio": "", "avatar_url": None} if collection == "users" else {}
        rows[number] = {"id": number, **defaults, **members, "created_at": now, "updated_at": now}
        self.extra["Location"] = f"http://{self.headers.get('Host')}/{collection}/{number}"
        return 201, show(number)

    # What is asked for

    def existing(self, rows, number):
        if not number.isdigit() or int(number) not in rows:
            raise Problem(404, f"There is nothing at {self.path}.")
        return int(number)

    def members(self, raw, *required):
        try:
            members = json.loads(raw)
            assert isinstance(members, dict)
        except (ValueError, AssertionError):
            raise Problem(400, "The body must be a JSON object.")
        missing = [name for name in required if name not in members]
        if missing:
            raise Problem(422, f"{', '.join(missing)} is missing.")
        if "author" in members and members["author"] not in self.server.blog.users:
            raise Problem(422, "author must be the id of a user.")
        if "tags" in members and not (isinstance(members["tags"], list) and set(members["tags"]) <= set(TAGS)):
            raise Problem(422, "tags must be a list of slugs that exist.")
        return members

    def newest(self, author=None, tag=None):
        posts = self.server.blog.posts
        found = [n for n, post in posts.items() if author in (None, post["author"]) and (tag is None or tag in post["tags"])]
        return sorted(found, key=lambda number: (posts[number]["created_at"], number), reverse=True)

    def page(self, found):
        number = lambda name, default: int(self.query[name]) if self.query.get(name, "").isdigit() else default
        size, page = max(1, min(number("per_page", 20), 100)), max(1, number("page", 1))
        last = max(1, -(-len(found) // size))
        others = "".join(f"&{name}={value}" for name, value in self.query.items() if name not in ("page", "per_page"))
        base = f"http://{self.headers.get('Host')}{urlsplit(self.path).path}"
        links = {"first": 1, "prev": page - 1, "next": page + 1, "last": last}
        self.extra["Link"] = ", ".join(f'<{base}?page={target}&per_page={size}{others}>; rel="{name}"'
                                       for name, target in links.items() if 1 <= target <= last and target != page) or None
        self.extra["X-Total-Count"] = str(len(found))
        return found[(page - 1) * size:page * size]

    def check_conditions(self, shown):
        wanted = self.headers.get("If-Match")
        if wanted and wanted != "*" and etag_of(encoded(shown)) not in [tag.strip() for tag in wanted.split(",")]:
            raise Problem(412, "It has changed since you read it.")

    # The response

    def answer(self, status, body, kind="application/json"):
        data = b"" if body is None else encoded(body)
        fields = {"Content-Type": f"{kind}; charset=utf-8" if data else None, **self.extra}
        if status == 200:
            fields["ETag"] = etag_of(data)
            fields["Last-Modified"] = formatdate(self.server.blog.changed.timestamp(), usegmt=True)
            fields["Cache-Control"] = f"private, max-age={self.server.options.max_age}"
            fields["Vary"] = "Accept"
            if self.command in ("GET", "HEAD") and self.is_unchanged(fields):
                status, data = 304, b""
                fields["Content-Type"] = None
        self.send_response(status)
        for name, value in fields.items():
            if value:
                self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        self.wfile.flush()

    def is_unchanged(self, fields):
        known = self.headers.get("If-None-Match")
        if known:
            return known == "*" or fields["ETag"] in [tag.strip().removeprefix("W/") for tag in known.split(",")]
        since = self.headers.get("If-Modified-Since")
        try:
            return bool(since) and parsedate_to_datetime(since) >= parsedate_to_datetime(fields["Last-Modified"])
        except (TypeError, ValueError):
            return False


def encoded(body):
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()


def etag_of(data):
    return f'"{hashlib.sha256(data).hexdigest()[:20]}"'


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


def main():
    parser = argparse.ArgumentParser(description="A small REST API of a blog, to try Larder on.")
    parser.add_argument("--port", type=int, default=9000, help="0 takes a free one (default: %(default)s)")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--latency", type=float, default=0, metavar="MS", help="answer that much later")
    parser.add_argument("--max-age", type=int, default=60, metavar="S", help="how long answers are fresh (default: %(default)s)")
    parser.add_argument("--verbose", action="store_true", help="log every request")
    options = parser.parse_args()
    server = Server((options.host, options.port), Handler)
    server.options, server.blog = options, Blog()
    print(f"sample API on http://{options.host}:{server.server_address[1]}", flush=True)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    sys.exit(main())
