"""Every refusal: each of these would be a way in."""

import http.client
import logging
import re
import socket

import httpx
import pytest

from keisei.runs import checkpoint
from keisei.web import security
from keisei.web.app import create_app
from keisei.web.security import COOKIE, MAX_BODY, Access, is_loopback
from tests.training.test_checkpoint import Harmful
from tests.web.conftest import rows_of, serving
from tests.web.test_play import PLAYER

TOKEN = "the-right-token"


@pytest.fixture(scope="module")
def guarded(trained_runs):
    """A server that asks for a token."""
    with serving(trained_runs, Access(any_address=True, token=TOKEN)) as client:
        yield client


def raw(client, method, path, headers=(), body=b""):
    """A request as it is: httpx would tidy up the path."""
    url = httpx.URL(client.base_url)
    connection = http.client.HTTPConnection(url.host, url.port, timeout=30)
    try:
        connection.putrequest(method, path, skip_host=any(k == "Host" for k, _ in headers))
        for name, value in headers:
            connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


# -- Host ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "10.0.0.1", "", "[::1"],
)
def test_a_name_that_is_not_ours_is_refused(client, host):
    status, body = raw(client, "GET", "/api/runs", [("Host", host)])
    assert status == 400
    assert b"first" not in body


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1234", "127.0.0.1:8000", "[::1]:8000"])
def test_names_of_this_machine_are_answered(client, host):
    assert raw(client, "GET", "/api/runs", [("Host", host)])[0] == 200


def test_loopback_and_what_is_not():
    assert all(map(is_loopback, ("localhost", "127.0.0.1", "127.1.2.3", "::1")))
    assert not any(map(is_loopback, ("0.0.0.0", "::", "192.168.1.2", "example.com")))


def test_beyond_loopback_there_is_a_token_and_addresses_are_names():
    assert Access.of("127.0.0.1").token is None
    one, two = Access.of("0.0.0.0"), Access.of("0.0.0.0", ("Shogi.Example",))
    assert len(one.token) >= 32
    assert one.token != two.token
    assert one.token not in repr(one)
    assert one.knows_host("192.168.1.2:8000")
    assert one.knows_host(socket.gethostname())
    assert not one.knows_host("shogi.example")
    assert two.knows_host("shogi.example")


# -- Origin --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1"},  # another port is another site
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_posts_of_other_sites_are_refused(client, headers):
    answer = client.post("/api/play", json={"player": PLAYER}, headers=headers)
    assert answer.status_code == 403
    assert answer.json() == {"detail": "requests from other sites are refused"}


def test_posts_of_our_own_page_pass(client):
    origin = str(client.base_url).rstrip("/")
    headers = {"Origin": origin, "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/play", json={"player": PLAYER}, headers=headers).status_code == 200


def test_other_sites_may_link_to_the_page_but_not_to_its_data(client):
    headers = {"Sec-Fetch-Site": "cross-site"}
    assert client.get("/", headers=headers).status_code in (200, 404)  # 404: it is not built
    assert client.get("/api/runs", headers=headers).status_code == 403


def test_no_answer_invites_other_sites(client):
    answer = client.get("/api/runs", headers={"Origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert client.options("/api/play", headers={"Origin": "https://evil.example"}).is_error


def test_a_form_of_another_kind_is_no_json(client):
    answer = client.post(
        "/api/play", content=b'{"player": "x"}', headers={"Content-Type": "text/plain"}
    )
    assert answer.status_code == 422


# -- token ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Cookie": f"{COOKIE}=wrong"},
        {"Cookie": f"{COOKIE}={TOKEN[:-1]}"},
        {"Cookie": f"{COOKIE}="},
        {"Cookie": "\x01;;=;"},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/api/runs", "/api/runs/first", "/api/runs/stream"])
def test_without_the_right_token_there_is_nothing(guarded, path, headers):
    guarded.cookies.clear()
    answer = guarded.get(path, headers=headers)
    assert answer.status_code == 401
    assert "first" not in answer.text


def test_a_wrong_token_in_the_address_is_refused_and_sets_nothing(guarded):
    guarded.cookies.clear()
    for wrong in ("wrong", "", TOKEN + "x", "\u00fc"):
        answer = guarded.get("/api/info", params={"token": wrong})
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers


def test_the_token_in_the_address_becomes_a_cookie(guarded):
    guarded.cookies.clear()
    answer = guarded.get("/api/info", params={"token": TOKEN})
    assert answer.status_code == 200
    assert answer.json()["token_required"]
    cookie = answer.headers["set-cookie"]
    for part in ("HttpOnly", "SameSite=Strict", "Path=/"):
        assert part in cookie
    assert guarded.get("/api/runs").status_code == 200  # by the cookie
    guarded.cookies.clear()
    assert guarded.get("/api/runs").status_code == 401
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert guarded.get("/api/runs", headers=bearer).status_code == 200


@pytest.mark.parametrize(
    "others", ['prefs={"a": 1, "b": [2]}', "a=b c", "name=J\xf6rg", "=", "a b=c", 'x="', COOKIE]
)
def test_cookies_of_other_programs_on_the_host_do_not_hide_ours(guarded, others):
    guarded.cookies.clear()
    for cookies in (f"{others}; {COOKIE}={TOKEN}", f"{COOKIE}={TOKEN}; {others}"):
        headers = {"Cookie": cookies.encode("latin-1")}
        assert guarded.get("/api/runs", headers=headers).status_code == 200


@pytest.mark.parametrize("token", [TOKEN, "nearly-the-right-token"])
def test_a_token_in_the_address_does_not_get_into_logs(guarded, caplog, monkeypatch, token):
    access = logging.getLogger("uvicorn.access")
    monkeypatch.setattr(access, "handlers", [caplog.handler])
    monkeypatch.setattr(access, "level", logging.INFO)
    access.manager._clear_cache()
    for path in ("/", "/api/info"):
        guarded.get(f"{path}?seed=1&token={token}&%74oken={token}")
    assert [record.getMessage() for record in caplog.records if "seed=1" in record.getMessage()]
    assert token not in caplog.text


def test_with_a_token_other_sites_are_still_refused(guarded):
    headers = {"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example"}
    assert guarded.post("/api/play", json={"player": PLAYER}, headers=headers).status_code == 403


# -- size ----------------------------------------------------------------------------------------


def test_large_bodies_are_refused(client):
    body = b'{"player": "' + b"x" * MAX_BODY + b'"}'
    headers = {"Content-Type": "application/json"}
    answer = client.post("/api/play", content=body, headers=headers)
    assert answer.status_code == 413
    assert client.post("/api/play", content=iter([body]), headers=headers).status_code == 413


def test_a_body_that_lies_about_its_length_is_refused(client):
    for length in ("-1", "1e9", "9" * 30, "\xb2"):
        status, _ = raw(client, "POST", "/api/play", [("Content-Length", length)])
        assert status in (400, 413)


def test_a_body_that_does_not_come_is_not_waited_for(client, monkeypatch):
    monkeypatch.setattr(security, "BODY_SECONDS", 0.1)
    headers = [("Content-Type", "application/json"), ("Content-Length", "100")]
    status, body = raw(client, "POST", "/api/play", headers, b'{"player": ')
    assert status == 408
    assert b"did not arrive in time" in body


def test_long_fields_are_refused(client):
    answer = client.post("/api/play", json={"player": "x" * 501})
    assert answer.status_code == 422
    assert client.get("/api/position", params={"sfen": "x" * 201}).status_code == 422


# -- paths ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "..",
        ".",
        "%2e%2e",
        "..%2f..%2fetc",
        "..%2fsecret",
        "%2fetc",
        "first%2f..%2fhunt",
        "first%00",
        "..%5c..",
        "%ff%fe",
        "x" * 300,
    ],
)
def test_no_way_leads_out_of_the_folder(client, trained_runs, name):
    secret = trained_runs.parent / "secret"
    secret.mkdir(exist_ok=True)
    (secret / "config.yaml").write_text("password: hunter2")
    for what in ("", "/series?name=kl", "/games", "/games/1/record", "/episode", "/stream"):
        status, body = raw(client, "GET", f"/api/runs/{name}{what}")
        assert status == 404
        assert b"hunter2" not in body


@pytest.mark.parametrize("path", ["/../app.py", "/%2e%2e/app.py", "/..%2fapp.py", "//etc/passwd"])
def test_static_files_are_those_of_the_page(client, path):
    status, body = raw(client, "GET", path)
    assert status == 404
    assert b"FastAPI" not in body


def test_links_out_of_the_folder_are_not_followed(runs, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "config.yaml").write_text("password: hunter2")
    (runs / "link").symlink_to(outside)
    (runs / "half").mkdir()
    (runs / "half" / "config.yaml").symlink_to(outside / "config.yaml")
    with serving(runs) as client:
        rows = rows_of(client)
        for name in ("link", "half"):
            assert rows[name]["state"] == "broken"
            assert "leads out of" in rows[name]["error"]
            assert "hunter2" not in client.get(f"/api/runs/{name}").text
        assert rows["first"]["state"] == "finished"


def test_a_link_within_the_folder_is_a_run(runs):
    (runs / "again").symlink_to(runs / "first")
    with serving(runs) as client:
        assert client.get("/api/runs/again").json()["state"] == "finished"


# -- code in files -------------------------------------------------------------------------------


def test_a_checkpoint_with_code_in_it_is_refused(runs, tmp_path, monkeypatch):
    trace = tmp_path / "it-ran"
    path = runs / "first" / "checkpoints" / "step_000000009999.pt"
    monkeypatch.setattr(checkpoint, "_encode", lambda state, where: state)
    checkpoint.save_checkpoint(path, {"agent": Harmful(trace)})  # under a right seal
    with serving(runs) as client:
        answer = client.post("/api/play", json={"player": f"run/first/{path.name}"})
        assert answer.status_code == 400
        assert "could run code" in answer.json()["detail"]
    assert not trace.exists()


def test_settings_with_code_in_them_are_refused(runs):
    (runs / "first" / "config.yaml").write_text("!!python/object/apply:os.abort []")
    with serving(runs) as client:
        row = client.get("/api/runs/first").json()
        assert row["state"] == "broken"
        assert "is not YAML" in row["error"]


# -- headers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/", "/api/runs", "/api/runs/nobody", "/nothing"])
def test_every_answer_has_the_headers_that_protect_it(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?:|\*", policy)
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "server" not in headers or "uvicorn" in headers["server"]  # `keisei serve` sends none
    if path.startswith("/api"):
        assert headers["cache-control"] == "no-store"


def test_there_are_no_pages_that_load_from_elsewhere(client):
    for path in ("/docs", "/redoc"):
        assert client.get(path).status_code == 404


def test_refusals_have_the_headers_too(client):
    answer = client.get("/api/runs", headers={"Host": "evil.example"})
    assert answer.status_code == 400
    assert "content-security-policy" in answer.headers


def test_what_is_no_http_is_not_answered(trained_runs):
    app = create_app(trained_runs)
    assert all(getattr(route, "protocol", "http") == "http" for route in app.routes)
