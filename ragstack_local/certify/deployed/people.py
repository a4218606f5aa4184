"""Checks of sign-in: tokens, the page that issues them, access labels, and the MCP endpoint."""

import re
import secrets
from dataclasses import dataclass, field
from html import unescape
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode, urljoin

import httpx2
import jwt

from ragstack_common.http.route_table import ROUTES
from ragstack_local.certify.check import Json, NotTried, Source, Topic
from ragstack_local.certify.deployed import deployment
from ragstack_local.certify.deployed.calls import TIMEOUT_SECONDS, Answer
from ragstack_local.certify.deployed.deployment import Deployment
from ragstack_local.certify.deployed.samples import ASCII, sample
from ragstack_local.certify.deployed.stacks import OPERATORS, READERS
from ragstack_local.certify.site import Site
from ragstack_local.connection.address import Address
from ragstack_local.signin.provider import ClientRegistration, Provider, read_claims

SIGN_IN: Final = Topic("sign_in", "sign-in (docs/ACCESS.md)", "")
LABELS: Final = Topic("labels", "access labels (docs/ACCESS.md)", "")

LOCAL_OPERATOR: Final = "olga"
LOCAL_READER: Final = "alice"

CALLBACK: Final = "http://localhost:8484/callback"
"""One of the addresses to which the sign-in page may send people back by default."""

PASSWORD_FLOW: Final = "ALLOW_ADMIN_USER_PASSWORD_AUTH"  # noqa: S105 - the name of a flow
"""With it, the owner of the pool gets tokens for people without the page."""

MCP_HEADERS: Final = {"Accept": "application/json, text/event-stream"}
LIST_TOOLS: Final = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

TOOLS: Final = ["ask", "get_document_status", "list_corpora", "list_versions", "retriever", "search"]

METADATA_PATH: Final = ROUTES["mcp_metadata"].path


@dataclass(frozen=True)
class People:
    """Those who sign in.

    Attributes:
        url: The API of people.
        operator: A person who may do and see everything.
        reader: A person who may read, and sees none of the documents of the run.
        stranger: Someone whose token the issuer gave to another client.
        client: The client to which the tokens were issued.
        name: The name with which the operator signs in.
        password: The operator's, if there are passwords.
    """

    url: str
    issuer: str
    operator: Address
    reader: Address
    stranger: Address
    client: ClientRegistration
    name: str
    password: str | None = field(default=None, repr=False)


def people(site: Site) -> People:
    """The people who sign in."""
    deployed = deployment.of(site)
    connection = deployed.connection
    if connection.people_url is None or connection.oidc_issuer is None or connection.oidc_audience is None:
        raise NotTried("nobody can sign in to this stack: `ragstack up --auth none,oidc` has people")
    audience = connection.oidc_audience.partition(",")[0]
    client = ClientRegistration(audience, (audience,))
    found = _cognito(site, deployed, client) if site.is_aws else _local(deployed, client)
    rights = {name: deployed.read("GET", "/api/me", caller=each)["rights"] for name, each in _both(found).items()}
    if "operate" not in rights["operator"] or "operate" in rights["reader"] or "read" not in rights["reader"]:
        raise NotTried("the access file of this stack gives its people other rights than that of the samples")
    return found


def _both(people: People) -> dict[str, Address]:
    return {"operator": people.operator, "reader": people.reader}


def _local(deployed: Deployment, client: ClientRegistration) -> People:
    """Sign in two users of the local issuer, and sign a token for another client with its key."""
    connection = deployed.connection
    issuer = str(connection.oidc_issuer)
    provider = Provider.discover(issuer)
    tokens = {user: provider.silently(client, user).bearer for user in (LOCAL_OPERATOR, LOCAL_READER)}
    key = Path(str(connection.data), "issuer-key.pem").read_bytes()
    claims = {**read_claims(tokens[LOCAL_OPERATOR]), "aud": "another-client", "client_id": "another-client"}
    kid = jwt.get_unverified_header(tokens[LOCAL_OPERATOR])["kid"]
    stranger = jwt.encode(claims, key, "RS256", {"kid": kid})
    url, answers_url = str(connection.people_url), connection.answers_url
    operator, reader, other = (
        Address(url, token=token, answers_url=answers_url) for token in (*tokens.values(), stranger)
    )
    return People(url, issuer, operator, reader, other, client, LOCAL_OPERATOR)


def _cognito(site: Site, deployed: Deployment, client: ClientRegistration) -> People:
    """Create two users in the pool of the run, and get their tokens without the page."""
    cognito = site.client("cognito-idp")
    issuer = str(deployed.connection.oidc_issuer)
    pool = issuer.rpartition("/")[2]
    password = f"Aa1!{secrets.token_urlsafe(24)}"
    names = {group: f"{group}@{site.token}.example.com" for group in (OPERATORS, READERS)}
    for group, name in names.items():
        cognito.admin_create_user(
            UserPoolId=pool,
            Username=name,
            MessageAction="SUPPRESS",
            UserAttributes=[{"Name": "email", "Value": name}, {"Name": "email_verified", "Value": "true"}],
        )
        cognito.admin_set_user_password(UserPoolId=pool, Username=name, Password=password, Permanent=True)
        cognito.admin_add_user_to_group(UserPoolId=pool, Username=name, GroupName=group)
    _allow_passwords(cognito, pool, client.client_id)
    other = cognito.create_user_pool_client(
        UserPoolId=pool, ClientName=site.name(), ExplicitAuthFlows=[PASSWORD_FLOW, "ALLOW_REFRESH_TOKEN_AUTH"]
    )["UserPoolClient"]["ClientId"]

    def signed_in(group: str, client_id: str) -> Address:
        answer = cognito.admin_initiate_auth(
            UserPoolId=pool,
            ClientId=client_id,
            AuthFlow="ADMIN_USER_PASSWORD_AUTH",
            AuthParameters={"USERNAME": names[group], "PASSWORD": password},
        )
        token = answer["AuthenticationResult"]["AccessToken"]
        return Address(str(deployed.connection.people_url), token=token)

    operator, reader = (signed_in(group, client.client_id) for group in (OPERATORS, READERS))
    stranger = signed_in(OPERATORS, other)
    return People(operator.api_url, issuer, operator, reader, stranger, client, names[OPERATORS], password)


def _allow_passwords(cognito: Any, pool: str, client_id: str) -> None:
    """Add the flow with passwords to the client of the run; an update sets what it does not name to its default."""
    found = cognito.describe_user_pool_client(UserPoolId=pool, ClientId=client_id)["UserPoolClient"]
    members = cognito.meta.service_model.operation_model("UpdateUserPoolClient").input_shape.members
    kept = {name: value for name, value in found.items() if name in members}
    flows = sorted({*found.get("ExplicitAuthFlows", []), PASSWORD_FLOW})
    cognito.update_user_pool_client(**{**kept, "ExplicitAuthFlows": flows})


def _asked(site: Site, token: str | None, *, path: str = "/api/corpora") -> Answer:
    """Send a request with a header as it stands, to the API of people."""
    found = site.shared(people)
    headers = {} if token is None else {"Authorization": token}
    return deployment.of(site).call("GET", path, caller=Address(found.url), headers=headers)


def _refusal(answer: Answer, url: str) -> Json:
    """Describe a refusal: its status, and whether its header leads to the metadata of the API."""
    challenge = answer.headers.get("www-authenticate", "")
    expected = f'Bearer resource_metadata="{url}{METADATA_PATH}"'
    return {"status": answer.status, "header": "names the metadata" if challenge == expected else "is another"}


REFUSED: Final = {"status": 401, "header": "names the metadata"}


@SIGN_IN.check(
    "token",
    "The API accepts tokens of the issuer, and reads the person's groups from them",
    Source.DOCUMENTATION,
    {
        "operator": {"read": True, "operate": True},
        "reader": {"read": True, "operate": False},
    },
)
def _token(site: Site) -> Json:
    found = site.shared(people)
    answers = {name: deployment.of(site).call("GET", "/api/me", caller=each) for name, each in _both(found).items()}
    return {
        name: {right: right in each.content["rights"] for right in ("read", "operate")}
        if each.succeeded
        else each.status
        for name, each in answers.items()
    }


@SIGN_IN.check(
    "no_token",
    "A request without a token is answered with 401 and the address of the metadata",
    Source.DOCUMENTATION,
    REFUSED,
)
def _no_token(site: Site) -> Json:
    return _refusal(_asked(site, None), site.shared(people).url)


@SIGN_IN.check(
    "malformed_token",
    "A header that does not match the authorizer's expression is answered with 401 and the address of the metadata",
    Source.GUESS,
    {"Bearer abc": REFUSED, "Basic YTpi": REFUSED},
)
def _malformed(site: Site) -> Json:
    url = site.shared(people).url
    return {text: _refusal(_asked(site, text), url) for text in ("Bearer abc", "Basic YTpi")}


@SIGN_IN.check("forged_token", "A token with another signature is answered with 401", Source.MODEL, REFUSED)
def _forged(site: Site) -> Json:
    """Change the signature of a token that is valid."""
    found = site.shared(people)
    head, _, signature = str(found.operator.token).rpartition(".")
    return _refusal(_asked(site, f"Bearer {head}.{signature[::-1]}"), found.url)


@SIGN_IN.check(
    "other_client", "A token that the issuer gave to another client is answered with 401", Source.DOCUMENTATION, REFUSED
)
def _other_client(site: Site) -> Json:
    found = site.shared(people)
    return _refusal(_asked(site, f"Bearer {found.stranger.token}"), found.url)


@SIGN_IN.check(
    "not_allowed",
    "Routes for operators answer 403 to a person without the right to operate",
    Source.GUESS,
    {"status": 403, "code": "NotAllowed"},
)
def _not_allowed(site: Site) -> Json:
    answer = deployment.of(site).call("GET", "/api/status", caller=site.shared(people).reader)
    return {"status": answer.status, "code": answer.error_code}


@SIGN_IN.check(
    "metadata",
    "The metadata of the MCP endpoint is public, and names the issuer",
    Source.GUESS,
    {"status": 200, "resource": "the endpoint", "issuers": "the issuer"},
)
def _metadata(site: Site) -> Json:
    found = site.shared(people)
    answer = _asked(site, None, path=METADATA_PATH)
    content = answer.content
    base = found.operator.answers_url or found.url
    return {
        "status": answer.status,
        "resource": "the endpoint" if content["resource"] == f"{base}/mcp" else "another",
        "issuers": "the issuer" if content["authorization_servers"] == [found.issuer] else "others",
    }


@SIGN_IN.check(
    "mcp",
    "The MCP endpoint lists its tools to signed-in people, and refers others to its metadata",
    Source.GUESS,
    {"tools": TOOLS, "without a token": REFUSED},
)
def _mcp(site: Site) -> Json:
    found, deployed = site.shared(people), deployment.of(site)
    with_token = deployed.call("POST", "/mcp", LIST_TOOLS, caller=found.reader, headers=MCP_HEADERS)
    without = deployed.call("POST", "/mcp", LIST_TOOLS, caller=Address(found.url), headers=MCP_HEADERS)
    names = sorted(tool["name"] for tool in with_token.content["result"]["tools"])
    return {"tools": names, "without a token": _refusal(without, found.url)}


@SIGN_IN.check(
    "page",
    "The sign-in page returns a person with a code, and the API accepts the token that the code is exchanged for",
    Source.THIRD_PARTY,
    {"the API accepts the token": True},
)
def _page(site: Site) -> Json:
    found = site.shared(people)
    provider = Provider.discover(found.issuer)
    if found.password is None:
        token = provider.silently(found.client, found.name).bearer
    else:
        token = _signed_in(provider, found)
    answer = _asked(site, f"Bearer {token}")
    return {"the API accepts the token": answer.succeeded}


def _signed_in(provider: Provider, found: People) -> str:
    """Sign in as a browser does: open the page, send its form, and exchange the code that comes back.

    Raises:
        NotTried: The page is another one than expected.
        StackError: The issuer refused.
    """
    asked = provider.authorization(found.client, CALLBACK)
    with httpx2.Client(trust_env=False, timeout=TIMEOUT_SECONDS) as browser:
        page = browser.get(asked.url, follow_redirects=True)
        token = re.search(r'name="_csrf"\s+value="([^"]+)"', page.text)
        action = re.search(r'<form[^>]*\saction="([^"]+)"', page.text)
        if token is None or action is None:
            raise NotTried("the sign-in page has another form than that of the hosted interface")
        form = {"_csrf": unescape(token[1]), "username": found.name, "password": str(found.password)}
        answer = browser.post(urljoin(str(page.url), unescape(action[1])), data=form)
    return provider.redeem(found.client, asked, answer.headers.get("location", "")).bearer


@LABELS.check(
    "hidden",
    "A person who lacks the label of a document does not find, list or get it",
    Source.GUESS,
    {
        "operator": {"searches": True, "lists": True, "gets": 200},
        "reader": {"searches": False, "lists": False, "gets": 404},
    },
)
def _labels(site: Site) -> Json:
    """Look for a document whose label a person lacks, in every way."""
    found, deployed, document = site.shared(people), deployment.of(site), sample(site, ASCII)
    seen = {}
    for name, caller in _both(found).items():
        search: Any = deployed.read("POST", "/api/retrieve", {"query": ASCII.question, "top_k": 50}, caller=caller)
        listed = deployed.read("GET", f"/api/documents?{urlencode({'prefix': deployed.folder})}", caller=caller)
        seen[name] = {
            "searches": any(result["source"] == document.uri for result in search["results"]),
            "lists": any(each["uri"] == document.uri for each in listed["documents"]),
            "gets": deployed.call("GET", f"/api/documents/{document.id}", caller=caller).status,
        }
    return seen
