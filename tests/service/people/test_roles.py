"""What each role may do, and what no agent may do: the table, walked."""

import itertools

import pytest

from haft.contracts import BadUsage, NeedsPerson, Principal
from haft.service import ACTIONS, ALLOWED, MEANING, NEVER_FOR_A_PART, NEVER_FOR_AGENTS, ROLES, Identity, Tokens

PERSON = Principal("ana")


def identity(kind, *roles, **more):
    return Identity("codex", kind, frozenset(roles), "token:1", **more)


def test_the_table_has_every_role_and_every_action_has_words_and_somebody_who_may():
    assert set(ALLOWED) == set(ROLES) and set(MEANING) == set(ACTIONS)
    assert set().union(*ALLOWED.values()) == set(ACTIONS) == ALLOWED["operator"]


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("action", ACTIONS)
def test_a_person_may_what_the_table_says_and_an_agent_never_what_could_approve_its_calls(role, action):
    assert identity("person", role).may(action) is (action in ALLOWED[role])
    assert identity("agent", role).may(action) is (action in ALLOWED[role] and action not in NEVER_FOR_AGENTS)


def test_a_reader_changes_nothing_and_a_caller_reaches_only_its_own():
    changing = {each for each in ACTIONS if not each.startswith("see-")}
    assert not ALLOWED["reader"] & changing
    assert not any(each.endswith("-all") for each in ALLOWED["caller"]) and not ALLOWED["caller"] & NEVER_FOR_AGENTS


@pytest.mark.parametrize("roles", [each for n in (2, 3) for each in itertools.combinations(ROLES, n)])
def test_several_roles_allow_what_any_of_them_allows(roles):
    both = identity("person", *roles)
    assert {each for each in ACTIONS if both.may(each)} == set().union(*(ALLOWED[role] for role in roles))


def test_nobody_without_a_role_may_anything():
    assert not any(identity("person").may(each) for each in ACTIONS)


@pytest.mark.parametrize("role", ROLES)
def test_no_agent_gets_a_role_that_could_approve_its_calls(tmp_path, role):
    tokens = Tokens(tmp_path)
    if ALLOWED[role] & NEVER_FOR_AGENTS:
        with pytest.raises(BadUsage, match="could then approve its own calls"):
            tokens.add("codex", PERSON, roles=["caller", role])
        assert tokens.all() == []
    else:
        assert tokens.add("codex", PERSON, roles=[role])[0].roles == {role}
    assert tokens.add("ben", PERSON, kind="person", roles=[role])[0].identity().kind == "person"


def test_workspaces_and_tools_narrow_what_an_identity_reaches():
    anywhere, narrow = (
        identity("agent", "caller"),
        identity("agent", "caller", workspaces=("web",), tools=("mcp__git__*",)),
    )
    assert anywhere.may_enter("x") and anywhere.may_call("shell")
    assert narrow.may_enter("web") and not narrow.may_enter("x")
    assert narrow.may_call("mcp__git__log") and not narrow.may_call("shell")
    assert not identity("agent", "reader").may_call("shell")


@pytest.mark.parametrize("part", [{"workspaces": ("web",)}, {"tools": ("read_*",)}])
def test_an_operator_of_a_part_reaches_no_further(part):
    found = {each for each in ACTIONS if not identity("person", "operator", **part).may(each)}
    assert found == NEVER_FOR_A_PART


def test_an_agent_acts_as_an_agent_and_cannot_make_tokens(tmp_path):
    acts = identity("agent", "caller").principal("T-1")
    assert (acts.who, acts.kind, acts.thread) == ("codex", "agent", "T-1")
    with pytest.raises(NeedsPerson):
        Tokens(tmp_path).add("other", acts)
