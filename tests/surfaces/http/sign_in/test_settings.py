"""What `[server.oidc]` and `[[server.webhooks]]` may say."""

import pytest

from haft.contracts import BadConfig
from haft.service import EVENTS, StateHome, load_config, webhooks_in
from haft.surfaces.http.sign_in import sign_in_for

MINIMAL = 'issuer = "https://login.example"\nclient_id = "haft"\n'


@pytest.fixture
def configured(tmp_path):
    def read(text, **variables):
        (tmp_path / "haft").mkdir(exist_ok=True)
        (tmp_path / "haft/haft.toml").write_text(f"[server.oidc]\n{text}")
        config = load_config(None, {"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path), **variables})
        return sign_in_for(config, StateHome(str(tmp_path / "state")), has_tls=True).oidc

    return read


def test_groups_get_roles_and_the_secret_comes_from_the_environment(configured):
    secret, groups = (
        'client_secret = "${env:OIDC_SECRET}"',
        'groups = {staff = "caller", admins = ["operator", "reader"]}',
    )
    found = configured(f"{MINIMAL}{secret}\n{groups}\n", OIDC_SECRET="s3cret")
    assert found.settings.groups == {"staff": {"caller"}, "admins": {"operator", "reader"}}
    assert found.settings.client_secret == "s3cret" and "s3cret" not in repr(found.settings)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('client_id = "haft"', "needs `issuer`"),
        (MINIMAL.replace("https://", "http://"), "must begin with https://"),
        (f'{MINIMAL}groups = {{staff = "god"}}', "the role `god`"),
        (f'{MINIMAL}secret = "x"', "did you mean `client_secret`"),
        (f'{MINIMAL}scopes = ["profile"]', "must contain `openid`"),
        (f'{MINIMAL}client_secret = "${{env:OIDC_SECRET}}"', "OIDC_SECRET"),
    ],
)
def test_a_mistake_is_named(configured, text, said):
    with pytest.raises(BadConfig) as raised:
        configured(text)
    assert said in f"{raised.value.message} {raised.value.hint}"


def test_without_the_setting_there_is_no_provider(tmp_path):
    config = load_config(None, {"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path)})
    assert sign_in_for(config, StateHome(str(tmp_path)), has_tls=False).oidc is None


HOOK = 'url = "https://chat.example/hook"\nsecret = "0123456789abcdef"\n'


@pytest.fixture
def hooks(tmp_path):
    def read(text, **variables):
        (tmp_path / "haft").mkdir(exist_ok=True)
        (tmp_path / "haft/haft.toml").write_text(f"[[server.webhooks]]\n{text}")
        return webhooks_in(load_config(None, {"XDG_CONFIG_HOME": str(tmp_path), "HOME": str(tmp_path), **variables}))

    return read


def test_a_webhook_hears_of_all_events_and_of_no_arguments_unless_it_says_so(hooks):
    (usual,) = hooks(HOOK)
    assert (usual.name, usual.events, usual.arguments, usual.private) == ("chat.example", set(EVENTS), False, False)
    assert "0123456789abcdef" not in repr(usual) and "chat.example/hook" not in repr(usual)
    secret = HOOK.replace("0123456789abcdef", "${env:HOOK_SECRET}")
    (other,) = hooks(f'{secret}events = ["run.failed"]\narguments = true\n', HOOK_SECRET="fedcba9876543210")
    assert (other.key, other.events, other.arguments) == (b"fedcba9876543210", {"run.failed"}, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('url = "https://x.example"', "needs `secret`"),
        (HOOK.replace("https", "http"), "must begin with https://"),
        (HOOK.replace("https", "file"), "must begin with https://"),
        (HOOK.replace("0123456789abcdef", "short"), "at least 16 characters"),
        (HOOK.replace("0123456789abcdef", "whsec_not base64!!!"), "must be base64"),
        (f'{HOOK}events = ["run.faild"]', "did you mean `run.failed`"),
        (f"{HOOK}argument = true", "did you mean `arguments`"),
    ],
)
def test_a_mistake_in_a_webhook_is_named(hooks, text, said):
    with pytest.raises(BadConfig) as raised:
        hooks(text)
    assert said in f"{raised.value.message} {raised.value.hint}"
