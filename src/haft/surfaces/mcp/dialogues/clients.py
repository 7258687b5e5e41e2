"""The program that makes an MCP request: which questions it answers, whether it knows tasks, and how long it waits.

A client says what it can answer: in `initialize`, or in each request since 2026-07-28. haft asks it nothing else. How
long it waits is known for some programs by their names. The name decides nothing but that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from haft.contracts import FORM, ApprovalRequest
from haft.values import dataclass

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext
    from mcp_types import ClientCapabilities

TASKS: Final = "io.modelcontextprotocol/tasks"
"""The tasks extension."""
MODERN: Final = "2026-07-28"
SAMPLING: Final = "sampling/createMessage"
ROOTS: Final = "roots/list"
URL: Final = "elicitation/create url"
"""Not a method of its own: the kind of elicitation that names a web address."""

UNKNOWN_LIMIT: Final = 60.0
KNOWN_LIMITS: Final[tuple[tuple[str, float], ...]] = (("codex", 300.0), ("gemini", 600.0), ("claude", 1800.0))
"""How many seconds these programs wait for the result of a call, by the beginning of their names. Progress does not
make them wait longer."""
PATIENT: Final = ("opencode",)
"""Programs that wait as long as they get progress."""
MARGIN: Final = 10.0
"""How many seconds before its limit a client gets an answer."""


@dataclass(frozen=True, slots=True)
class Client:
    """The program that makes a request."""

    name: str
    """How runs and the audit log name the client."""
    is_modern: bool = True
    """Whether a question is the result of the request (since 2026-07-28). Before, it was a request of the server."""
    answers: frozenset[str] = frozenset()
    """The kinds of questions that it answers."""
    has_tasks: bool = False
    limit: float | None = None
    """After how many seconds a waiting request must get an answer; None if progress makes the client wait."""
    is_known: bool = False
    """Whether `limit` is the limit of this program, and not a guess."""

    def can_answer(self, request: ApprovalRequest) -> bool:
        """Whether the client declared that it answers such a question."""
        question = request.question
        if question is None:
            return FORM in self.answers
        return (URL if question.url is not None else question.method) in self.answers


def client_of(context: ServerRequestContext[Any, Any], name: str, *, has_token: bool) -> Client:
    """The client that makes this request. `has_token`: whether it asked for progress."""
    session = context.session
    is_modern = context.protocol_version == MODERN
    params = session.client_params
    software = "" if params is None else params.client_info.name
    limit, is_known = limit_of(software, has_token=has_token)
    capabilities = session.client_capabilities
    can_ask = is_modern or session.can_send_request
    return Client(
        name,
        is_modern,
        answered_kinds(capabilities) if capabilities is not None and can_ask else frozenset(),
        has_tasks=is_modern and capabilities is not None and TASKS in (capabilities.extensions or {}),
        limit=limit,
        is_known=is_known,
    )


def answered_kinds(capabilities: ClientCapabilities) -> frozenset[str]:
    """The kinds of questions that a client with these capabilities answers."""
    elicitation = capabilities.elicitation
    shows_urls = elicitation is not None and elicitation.url is not None
    # An empty declaration means forms: web addresses came later.
    shows_forms = elicitation is not None and (elicitation.form is not None or not shows_urls)
    declared = (
        (FORM, shows_forms),
        (URL, shows_urls),
        (SAMPLING, capabilities.sampling is not None),
        (ROOTS, capabilities.roots is not None),
    )
    return frozenset(kind for kind, is_declared in declared if is_declared)


def limit_of(software: str, *, has_token: bool) -> tuple[float | None, bool]:
    """After how many seconds a program of this name must get an answer, and whether that is known of it."""
    name = software.lower()
    if has_token and name.startswith(PATIENT):
        return None, True
    for beginning, seconds in KNOWN_LIMITS:
        if name.startswith(beginning):
            return seconds - MARGIN, True
    return UNKNOWN_LIMIT - MARGIN, False
