"""A small program that uses an API, with nothing but the standard library."""
import json
import os
import urllib.error
import urllib.request


def ask(path, method="GET", body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(os.environ["LARDER_URL"] + path, data=data, method=method)
    request.add_header("Accept", "application/json")
    request.add_header("Authorization", "Bearer " + os.environ.get("TOKEN", "any"))
    if data:
        request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request) as response:
        return json.load(response)


def names():
    return [user["name"] for user in ask("/users")]


def rename(number, name):
    return ask(f"/users/{number}", "PATCH", {"name": name})["name"]


def exists(number):
    try:
        ask(f"/users/{number}")
        return True
    except urllib.error.HTTPError as error:
        if error.code == 404:
            return False
        raise
