"""Who one is, and that nobody is anybody else: on every route, by any id."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace

import httpx
import pytest
from starlette.routing import Route

from ibid.domain.principals import Principal
from ibid.domain.projects import GitSource, Role
from tests.fakes.app import ANN, BOB, EVE, FakeApp

OPEN = {("GET", "/healthz"), ("GET", "/openapi.json"), ("HEAD", "/openapi.json")}
STRANGERS = [
    BOB,
    EVE,
    Principal(tenant="acme", subject="Ann"),
    Principal(tenant="ACME", subject="ann"),
]


@dataclass(frozen=True, kw_only=True)
class Owned:
    """Ids of one thing each of Ann's, by the name of a path's parameter."""

    ids: Mapping[str, str] = field(default_factory=dict)


async def everything_of_ann(app: FakeApp) -> Owned:
    project = await app.project(source=GitSource(url="https://git.test/shop"))
    conversation = await app.conversation(project=project)
    async with app.client() as ann:
        run = (
            await ann.post(f"/conversations/{conversation.id}/messages", json={"question": "?"})
        ).json()
        job = (await ann.post(f"/projects/{project.id}/index")).json()
        upload = (
            await ann.post(
                f"/projects/{project.id}/uploads", json={"fileName": "shop.zip", "bytes": 4}
            )
        ).json()
    return Owned(
        ids={
            "projectId": project.id,
            "conversationId": conversation.id,
            "runId": run["runId"],
            "jobId": job["jobId"],
            "uploadId": upload["uploadId"],
        }
    )


BODIES: Mapping[tuple[str, str], Mapping[str, object]] = {
    ("POST", "/conversations"): {"projectId": "{projectId}"},
    ("POST", "/ask"): {"dataset_id": "{projectId}", "question": "Where?"},
    ("POST", "/conversations/{conversationId}/messages"): {"question": "Where?"},
    ("POST", "/conversations/{conversationId}/runs"): {"question": "Where?"},
    ("POST", "/feedback"): {"thread_id": "{conversationId}", "rating": "up"},
    ("POST", "/resume"): {"thread_id": "{conversationId}", "message": "the shop's"},
    ("POST", "/runs/{runId}/cancel"): {},
    ("PATCH", "/conversations/{conversationId}"): {"title": "Mine"},
    ("PATCH", "/projects/{projectId}"): {"name": "mine"},
    ("POST", "/projects"): {"name": "mine"},
    ("POST", "/projects/{projectId}/index"): {},
    ("POST", "/projects/{projectId}/uploads"): {"fileName": "mine.zip", "bytes": 4},
}
FORMS = {("POST", "/projects/{projectId}/uploads/{uploadId}")}
Call = Callable[[httpx.AsyncClient, Mapping[str, str]], Awaitable[httpx.Response]]


def table() -> list[tuple[str, str]]:
    """Every method of every path of the application."""
    routes = [route for route in FakeApp().app.routes if isinstance(route, Route)]
    return [(method, route.path) for route in routes for method in sorted(route.methods or ())]


def call_of(method: str, path: str) -> Call:
    """Make a valid call of a route; a new route that needs a body has to be named above."""
    if method in {"POST", "PUT", "PATCH"} and (method, path) not in {*BODIES, *FORMS}:
        pytest.fail(f"{method} {path} is new: say what a valid body of it is")

    async def call(client: httpx.AsyncClient, ids: Mapping[str, str]) -> httpx.Response:
        url = path.format(**ids)
        if (method, path) in FORMS:
            return await client.post(url, data={"key": "k"}, files={"file": b"none"})
        body = {
            name: value.format(**ids) if isinstance(value, str) else value
            for name, value in BODIES.get((method, path), {}).items()
        }
        return await client.request(method, url, json=body if (method, path) in BODIES else None)

    return call


def names_a_thing(method: str, path: str) -> bool:
    return "{" in path or any(
        "{" in str(value) for value in BODIES.get((method, path), {}).values()
    )


@pytest.mark.parametrize(("method", "path"), table())
@pytest.mark.parametrize("stranger", STRANGERS, ids=lambda one: f"{one.tenant}-{one.subject}")
async def test_a_stranger_gets_what_an_id_that_never_was_gets(
    method: str, path: str, stranger: Principal
) -> None:
    app = FakeApp()
    owned = await everything_of_ann(app)
    never = dict.fromkeys(owned.ids, "0" * 32)
    call = call_of(method, path)

    async with app.client(stranger) as client:
        answer = await call(client, owned.ids)
        blank = await call(client, never)

    if names_a_thing(method, path):
        assert answer.status_code == 404
        assert answer.content == blank.content
        assert dict(answer.headers) == dict(blank.headers)
    elif (method, path) in OPEN:
        assert answer.status_code == 200
    else:  # a list, or something new of the stranger's own
        assert answer.status_code in {200, 201}
        assert not any(one in answer.text for one in owned.ids.values())


@pytest.mark.parametrize(("method", "path"), table())
async def test_a_mixture_of_own_and_foreign_ids_is_404(method: str, path: str) -> None:
    app = FakeApp()
    mine, yours = await everything_of_ann(app), (await app.project(BOB)).id
    if path.count("{") < 2:
        return
    call = call_of(method, path)

    async with app.client(BOB) as bob:
        answer = await call(bob, {**mine.ids, "projectId": yours})

    assert answer.status_code == 404


@pytest.mark.parametrize(("method", "path"), table())
async def test_the_owner_is_never_a_stranger(method: str, path: str) -> None:
    app = FakeApp()
    owned = await everything_of_ann(app)

    async with app.client() as ann:
        answer = await call_of(method, path)(ann, owned.ids)

    assert answer.status_code not in {401, 403, 404, 405}
    assert answer.status_code < 500


@pytest.mark.parametrize(
    ("method", "path", "least"),
    [
        ("GET", "", Role.VIEWER),
        ("GET", "/jobs", Role.VIEWER),
        ("GET", "/indexed-paths", Role.VIEWER),
        ("POST", "/index", Role.EDITOR),
        ("POST", "/uploads", Role.EDITOR),
        ("PATCH", "", Role.OWNER),
        ("DELETE", "", Role.OWNER),
    ],
)
@pytest.mark.parametrize("held", list(Role))
async def test_a_member_needs_the_role(method: str, path: str, least: Role, held: Role) -> None:
    app = FakeApp()
    source = GitSource(url="https://git.test/shop")
    project = await app.project(members={BOB.subject: held}, source=source, ready=False)
    body = BODIES.get((method, f"/projects/{{projectId}}{path}"))
    order = [Role.VIEWER, Role.EDITOR, Role.OWNER]

    async with app.client(BOB) as bob:
        answer = await bob.request(method, f"/projects/{project.id}{path}", json=body)

    if order.index(held) < order.index(least):
        assert answer.status_code == 403
        assert answer.json()["detail"]["code"] == "INSUFFICIENT_ROLE"
    else:
        assert answer.status_code in {200, 201, 202, 204, 409}


async def test_the_members_of_a_project_do_not_share_conversations() -> None:
    app = FakeApp()
    project = await app.project(members={BOB.subject: Role.OWNER})
    conversation = await app.conversation(ANN, project)

    async with app.client(BOB) as bob:
        answer = await bob.get(f"/conversations/{conversation.id}")
        listed = await bob.get("/conversations")

    assert answer.status_code == 404
    assert listed.json() == {"items": [], "nextCursor": None}


async def test_without_the_header_everybody_is_the_fixed_principal() -> None:
    app = FakeApp(change=lambda services: replace(services, principal=ANN))
    conversation = await app.conversation(ANN)

    async with app.client(None) as client:
        answer = await client.get(f"/conversations/{conversation.id}")

    assert answer.status_code == 200


@pytest.mark.parametrize("header", ["acme/ann", "", "malformed", "rival/eve"])
async def test_the_header_means_nothing_where_it_is_off(header: str) -> None:
    app = FakeApp(change=lambda services: replace(services, principal=BOB, dev_principals=False))
    mine, yours = await app.conversation(BOB), await app.conversation(ANN)

    async with app.client(None, headers={"Ibid-Dev-Principal": header}) as client:
        answers = [await client.get(f"/conversations/{one.id}") for one in (mine, yours)]

    assert [answer.status_code for answer in answers] == [200, 404]


@pytest.mark.parametrize(
    "header",
    [
        "",
        "acme",
        "acme/",
        "/ann",
        "acme/ann/x",
        "acme /ann",
        "ac\tme/ann",
        "é/ann",
        f"{'a' * 129}/b",
    ],
)
async def test_a_malformed_header_is_422_and_not_repeated(header: str) -> None:
    app = FakeApp()

    async with app.client(None) as client:
        answer = await client.get("/projects", headers=[(b"Ibid-Dev-Principal", header.encode())])

    assert answer.status_code == 422
    assert list(answer.json()["detail"]["fields"]) == ["Ibid-Dev-Principal"]
    assert not header or header not in answer.text


async def test_two_headers_are_malformed() -> None:
    headers = [("Ibid-Dev-Principal", "acme/ann"), ("Ibid-Dev-Principal", "acme/bob")]

    async with FakeApp().client(None) as client:
        answer = await client.get("/projects", headers=headers)

    assert answer.status_code == 422
