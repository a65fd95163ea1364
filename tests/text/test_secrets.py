"""Credentials are masked, everything that only looks or sounds like one is not (complaint 54).

The credentials are made up and written in two halves, so that no scanner of repositories takes them for real.
"""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recall.text.secrets import Secret, find, mask

HEX = "3f9a1c07b2d84e65"
MIXED = "aB3dE6gH9jK2mN5pQ8sT1vW4"

SHAPES = [
    ("aws key id", "AKIA" + "Q3EGRIZ7XTK5UVW2"),
    ("aws key id", "ASIA" + "Q3EGRIZ7XTK5UVW2"),
    ("alibaba key id", "LTAI" + "5tKq8ZxW2mNbV7cD4fGh"),
    ("tencent key id", "AKID" + "z8krbsJ5yKBZQpn74WFkmLPx3EXAMPL5"),
    ("google key", "AIza" + "SyD3k9Lm2Qp7Rt5Vw8Xz1Bc4Df6Gh0Jk-n"),
    ("google token", "ya29." + "a0AfH6SMBx3k9Lm2Qp7Rt5Vw8"),
    ("anthropic key", "sk-" + f"ant-api03-{MIXED}-{MIXED}AA"),
    ("openai key", "sk-" + f"proj-{MIXED}_{MIXED}"),
    ("openai key", "sk-" + f"svcacct-{MIXED}"),
    ("openrouter key", "sk-" + f"or-v1-{HEX}{HEX}"),
    ("dashscope key", "sk-" + "sp-a1b2c3d4e5f6.g7h8i9j0k1l2"),
    ("dashscope key", "sk-" + "sp-D1a2.Xy9Z8w7V6"),
    ("api key", "sk-" + HEX + HEX),
    ("api key", "sk-" + "abcdefghijklmnopqrstuvwxyz"),
    ("huggingface token", "hf_" + "AbCdEfGhIjKlMnOpQrStUvWxYzAbCdEfGh"),
    *(
        ("github token", f"{prefix}_" + "16C7e42F292c6912E7710c838347Ae178B4a")
        for prefix in ("ghp", "gho", "ghu", "ghs")
    ),
    ("github token", "github_pat_" + "11ABCDEFG0abcdefghijkl_mnopqrstuvwxyz"),
    ("gitlab token", "glpat-" + "Xy7_aB3dE6gH9jK2mN5p"),
    ("slack token", "xoxb-" + "123456789012-1234567890123-" + MIXED),
    ("slack token", "xapp-" + "1-A0123456789-1234567890123-" + HEX),
    ("sendgrid key", "SG." + "ngeVfQFYQlKU0ufo8x5d1A.TwL2iGABf9DHoTf9kqeF8tAmbihYzrnopKc1s5cr"),
    ("npm token", "npm_" + "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0bC3dE6"),
    ("pypi token", "pypi-" + "AgEIcHlwaS5vcmc" + MIXED + MIXED),
    ("stripe key", "sk_live_" + MIXED),
    ("stripe key", "rk_live_" + MIXED),
    ("zhipu key", HEX + HEX + "." + "aB3dE6gH9jK2mN5p"),
    ("telegram token", ":AA" + "H9x3kLm2Qp7Rt5Vw8Xz1Bc4Df6Gh0JkNpQ"),
    ("jwt", "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiI0MjQyIn0.dBjftJeZ4CVPmB92K27uhbUJU1p1r"),
    ("github token", "ghp_" + "a" * 36),
    ("groq key", "gsk_" + MIXED + MIXED),
]

ASSIGNMENTS = [
    ("DB_PASSWORD=Tr0ub4dor&3", "DB_PASSWORD=[masked password]"),
    ('{"password": "k9#mPx2q", "port": 5432}', '{"password": "[masked password]", "port": 5432}'),
    ("- **Password**: `wombat-77-Xq!`", "- **Password**: `[masked password]`"),
    ("测试环境密码：Qw8$kd02，账号 tester", "测试环境密码：[masked password]，账号 tester"),
    ("数据库密码（只读）: rO9x2kLm", "数据库密码（只读）: [masked password]"),
    ("登录口令是 zx81kQ92。", "登录口令是 [masked password]。"),
    ("门禁密码 804713", "门禁密码 [masked password]"),
    ("| 密码 | Hj7k2mQ9 |", "| 密码 | [masked password] |"),
    ("口令：Hj7k2mQ9<br>下一行", "口令：[masked password]<br>下一行"),
    ("the password is Xk29vLq8.", "the password is [masked password]."),
    (f"api_key = '{MIXED}'", "api_key = '[masked secret]'"),
    (f"密钥：{MIXED}", "密钥：[masked secret]"),
    (f"aws_secret_access_key = wJ4l{MIXED}/K7MDENG+b", "aws_secret_access_key = [masked secret]"),
    (f"AccessKeySecret: {MIXED}", "AccessKeySecret: [masked secret]"),
    (f"GET /cb?token={MIXED}&state=1", "GET /cb?token=[masked secret]&state=1"),
    (f"client_secret={MIXED},scope=all", "client_secret=[masked secret],scope=all"),
    (f"Authorization: Bearer {MIXED}", "Authorization: Bearer [masked bearer token]"),
    ("Authorization: Basic " + "dG9tOkhqN2sybVE5", "Authorization: Basic [masked basic credentials]"),
    ("postgres://app:" + "s3cr3tPw@db.internal/x", "postgres://app:[masked password]@db.internal/x"),
    ("redis://:" + "Hj7k2mQ9@cache:6379/0", "redis://:[masked password]@cache:6379/0"),
    ("https://hooks.slack.com/services/" + f"T02AB/B03CD/{MIXED}", "https://hooks.slack.com/[masked webhook]"),
]

HARMLESS = [
    "Ask for an API key before you call the service; the token is refreshed every 24h.",
    "API key 放在 1Password 里，密码是必填项，密码长度 8 位以上",
    "OPENAI_API_KEY=<your-key>",
    "OPENAI_API_KEY=sk-xxxxxxxxxxxxxxxxxxxxxxxx",
    "api_key: sk-your-api-key-goes-right-here",
    "export TOKEN=$GITHUB_TOKEN1234 PASSWORD=${DB_PASSWORD_V2}",
    "token = os.environ['TOKEN_2024_PROD']; secret: config.secrets.api_key_v2",
    "password: str = getpass(); password=self.password2; token: Optional[Token12345678]",
    "password: changeme  password: password123  secret=example-secret-12345",
    "sk-... and ghp_... are prefixes; sk-ant-... too",
    "AKIAIOSFODNN7EXAMPLE",
    "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX",
    "the password is base64-encoded and hashed with sha256, 密码用 bcrypt12 存",
    "max_tokens: 4096, eos_token: 151643, token_count = 123456789012",
    "PWD=/home/dev1/project22 and secret: /etc/keys/app1-prod2.pem",
    "arn:aws:secretsmanager:eu-west-1:app:secret:prod/db-main-2",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8, sha256:" + HEX * 4,
    "id 550e8400-e29b-41d4-a716-446655440000, build 20260315.1, md5 " + HEX * 2 + ".",
    "![logo](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9)",
    "postgres://user:password@localhost/db and https://user:${PASS}@host and amqp://guest:guest@mq",
    "http://localhost:3000/@vite/client, git@github.com:org/repo.git, docker://nginx:1.25@sha256:" + HEX,
    "task-sk-learn-something-quite-long-and-wordy-in-kebab-case",
    "A key file starts with -----BEGIN PRIVATE KEY----- and ends with -----END PRIVATE KEY-----",
    "Bearer authentication-is-required-here",
    "密码 Confluence12 页有写, and the password is Rotated90 days ago",
    'publicKeyToken="1fc8b3b9a1e18e3b"',
    "email: password: dev1@example.org, password changed: 2026-03-15T10:00",
    "",
]

PEM = """-----BEGIN RSA PRIVATE KEY-----
Proc-Type: 4,ENCRYPTED
DEK-Info: AES-128-CBC,3F9A1C07B2D84E65

MIIEowIBAAKCAQEA7bq0hXkq3mVJt2cR8Zp1sYw5uN4dKf6gHj9LmQxTvBnCzE0a
Wr8sPq2yFh7
-----END RSA PRIVATE KEY-----"""


@pytest.mark.parametrize(("kind", "value"), SHAPES)
def test_a_credential_is_masked_whole_wherever_it_stands(kind: str, value: str) -> None:
    front = "bot8123456789" if kind == "telegram token" else "Key "
    for before, after in (("", ""), ("x: `", "`"), ("用的是", "，别外传"), ('"', '",'), ("(", ").")):
        text = f"{before}{front}{value}{after}\nnext line"
        assert mask(text) == f"{before}{front}[masked {kind}]{after}\nnext line"


@pytest.mark.parametrize(("text", "masked"), ASSIGNMENTS)
def test_the_value_behind_a_telling_word_is_masked_and_the_word_stays(text: str, masked: str) -> None:
    assert mask(text) == masked


@pytest.mark.parametrize("text", HARMLESS)
def test_prose_placeholders_code_and_hashes_stay_untouched(text: str) -> None:
    assert mask(text) == text
    assert find(text) == []


def test_a_private_key_block_is_masked_whole_also_escaped_or_cut_off() -> None:
    assert mask(f"key:\n{PEM}\nend") == "key:\n[masked private key]\nend"
    escaped = PEM.replace("\n", "\\n")
    assert mask(f'{{"private_key": "{escaped}\\n", "x": 1}}') == '{"private_key": "[masked private key]\\n", "x": 1}'
    half = PEM[: PEM.index("\nWr8s")]
    assert mask(f"{half}\nAnd some prose.") == "[masked private key]\nAnd some prose."


def test_the_particular_kind_wins_over_the_general_one() -> None:
    token = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    assert find(f"token={token}") == [Secret("github token", 6, 6 + len(token))]
    assert mask(f"password=x9-{token}!tail7 end") == "password=[masked github token] end"
    assert mask(f"https://x:{token}@github.com") == "https://x:[masked github token]@github.com"


def test_findings_are_ordered_and_several_on_a_line_are_all_masked() -> None:
    first, second = "hf_" + MIXED + MIXED, "glpat-" + MIXED
    text = f"{first} then {second}, password=Hj7k2mQ9"
    assert [secret.kind for secret in find(text)] == ["huggingface token", "gitlab token", "password"]
    assert mask(text) == "[masked huggingface token] then [masked gitlab token], password=[masked password]"


@given(
    st.lists(
        st.sampled_from([value for _, value in SHAPES] + [text for text, _ in ASSIGNMENTS] + HARMLESS)
        | st.text(st.sampled_from("ab1 .:=@/-_\n密码`'\"|"), max_size=8)
    )
)
def test_masking_is_idempotent_and_findings_never_overlap(parts: list[str]) -> None:
    text = "".join(parts)
    found = find(text)
    assert all(secret.start < secret.end <= len(text) for secret in found)
    assert all(one.end <= two.start for one, two in pairwise(found))
    assert mask(mask(text)) == mask(text)


@pytest.mark.parametrize(
    "unit",
    [
        "sk-",
        "-eyJ",
        "SG.",
        "password:",
        "密码 (",
        "token=",
        ":",
        "-----BEGIN PRIVATE KEY-----",
        HEX,
        "&a",
        "://a:",
        " ",
    ],
)
@pytest.mark.timeout(30)
def test_a_long_line_made_to_provoke_backtracking_is_searched_in_linear_time(unit: str) -> None:
    """The guard is the timeout: quadratic search in a million characters takes hours."""
    text = unit * (1_000_000 // len(unit))
    assert len(mask(text)) <= len(text)
