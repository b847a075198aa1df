"""A pytest plugin: each test has exchanges of its own in a recording of Larder, so that tests run in any order.

Copy this file beside your conftest.py, and name it there: pytest_plugins = ["larder_sessions"]

Requests to LARDER_URL that go through http.client (urllib, requests, urllib3) or httpx get the field Larder-Session
with the name of the test that makes them. For other clients, send the value of the fixture `larder_session` yourself.
With pytest-xdist they also get Larder-Process: each worker sets up the fixtures that its tests share.
"""
import functools
import http.client
import os
import urllib.parse

import pytest

_larder = urllib.parse.urlsplit(os.environ.get("LARDER_URL", ""))
_worker = os.environ.get("PYTEST_XDIST_WORKER")
_session = None


def _switch(session):
    global _session
    previous, _session = _session, session
    return previous


def _named(session):
    # A field's value is ASCII.
    return session.encode("ascii", "backslashreplace").decode()


def _fields(host, port):
    if _session is None or (host, port) != (_larder.hostname, _larder.port):
        return {}
    return {"Larder-Session": _session, **({"Larder-Process": _worker} if _worker else {})}


@pytest.fixture
def larder_session(request):
    return _named(request.node.nodeid)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    previous = _switch(_named(item.nodeid))
    try:
        return (yield)
    finally:
        _switch(previous)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """What several tests share has a session of its own, whichever test comes first."""
    if fixturedef.scope == "function":
        return (yield)
    own = _named(f"{request.node.nodeid}::{fixturedef.argname}[{request.param_index}]")
    outer = []
    # Finalizers run in reverse: the first one after the fixture's own end, the last one before it.
    request.addfinalizer(lambda: _switch(outer.pop()))
    previous = _switch(own)
    try:
        return (yield)
    finally:
        _switch(previous)
        request.addfinalizer(lambda: outer.append(_switch(own)))


def _patch_http_client():
    end = http.client.HTTPConnection.endheaders

    @functools.wraps(end)
    def endheaders(self, *arguments, **options):
        for name, value in _fields(self.host, self.port).items():
            self.putheader(name, value)
        return end(self, *arguments, **options)

    http.client.HTTPConnection.endheaders = endheaders


def _patch_httpx(client):
    build = client.build_request

    @functools.wraps(build)
    def build_request(self, *arguments, **options):
        request = build(self, *arguments, **options)
        request.headers.update(_fields(request.url.host, request.url.port))
        return request

    client.build_request = build_request


_patch_http_client()
try:
    import httpx
except ImportError:
    pass
else:
    _patch_httpx(httpx.Client)
    _patch_httpx(httpx.AsyncClient)
