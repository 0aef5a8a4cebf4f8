"""Credentials of code forges, package registries and build services."""

import json
import zlib

from bench.secret_kinds import base as b

KINDS, add = b.table("forge")
BEARER = "Authorization: Bearer {v}"
GITHUB = "GitHub Docs: GitHub's token formats"
GITLAB = "GitLab Docs: Token overview, token prefixes"


def _github_stateless(rng):
    claims = {
        "iss": "https://token.actions.githubusercontent.com",
        "jti": b.uuid(rng),
        "iat": rng.randint(1790000000, 1796000000),
        "iid": rng.randint(10**7, 10**8),
        "ctx": rng.randbytes(60).hex(),
    }
    token = b.jwt({"alg": "ES256", "typ": "JWT"}, claims, rng.randbytes(64))
    return f"ghs_{rng.randint(100000, 3000000)}_{token}"


def _routable(prefix, version):
    """GitLab's routable token: payload, its length and a CRC32 in base 36."""

    def base36(number, width):
        digits = ""
        while number:
            number, rest = divmod(number, 36)
            digits = b.LOWER36[rest] + digits
        return digits.rjust(width, "0")

    def make(rng):
        route = f"o:{rng.randrange(1, 46656):x}\nu:{rng.randrange(1, 10**7):x}"
        payload = b.b64url(rng.randbytes(16) + route.encode() + b"\x10")
        head = f"{prefix}{payload}.{version}{base36(len(payload), 2)}"
        return head + base36(zlib.crc32(head.encode()), 7)

    return make


def _pypi(rng):
    """Give a version 2 macaroon of pypi.org with one caveat and a signature."""
    caveat = b'{"permissions": "user", "version": 1}'
    raw = b"\x02\x01\x08pypi.org\x02\x24" + b.uuid(rng).encode() + b"\x00"
    raw += b"\x02" + bytes([len(caveat)]) + caveat + b"\x00"
    return "pypi-" + b.b64url(raw + b"\x00\x06\x20" + rng.randbytes(32))


def _jfrog_reference(rng):
    expiry = rng.randint(1790000000, 1900000000)
    text = f"reftkn:01:{expiry}:{b.chars(rng, b.B62, 27)}"
    return b.b64(text.encode())


def _docker_auth(value, rng):
    return json.dumps(
        {"auths": {"https://index.docker.io/v1/": {"auth": value}}}, indent=2
    )


def _docker_value(rng):
    return b.b64(f"{b.user(rng)}:dckr_pat_{b.chars(rng, b.B64URL, 27)}".encode())


for _name, _prefix, _names in (
    ("classic_pat", "ghp_", "GITHUB_TOKEN GH_TOKEN HOMEBREW_GITHUB_API_TOKEN"),
    ("oauth", "gho_", "oauth_token GITHUB_TOKEN"),
    ("user_to_server", "ghu_", "GITHUB_TOKEN GH_TOKEN"),
    ("app_installation", "ghs_", "GITHUB_TOKEN INSTALLATION_TOKEN"),
):
    add(
        f"github_{_name}",
        b.with_crc32(_prefix),
        _names,
        GITHUB,
        "https://{v}@github.com/acme/{w}.git",
        BEARER,
        "https://x-access-token:{v}@github.com/acme/{w}.git",
    )
add("github_refresh", b.pre("ghr_", 76), "refresh_token", GITHUB)
add(
    "github_fine_grained_pat",
    b.shape("github_pat_11", (b.UPPER36, 10), (b.B62, 10), "_", (b.B62, 59)),
    "GITHUB_TOKEN GH_TOKEN GITHUB_PERSONAL_ACCESS_TOKEN",
    GITHUB,
    "https://oauth2:{v}@github.com/acme/{w}.git",
)
add(
    "github_app_stateless",
    _github_stateless,
    "GITHUB_TOKEN GH_TOKEN",
    "GitHub changelog 2026-05-15: App installation tokens",
    "https://x-access-token:{v}@github.com/acme/{w}.git",
    BEARER,
    sure=False,
)
add(
    "github_client_secret",
    b.pre("", 40, b.HEX),
    "GITHUB_CLIENT_SECRET GITHUB_OAUTH_CLIENT_SECRET",
    "GitHub Docs: Authorizing OAuth apps",
    bare=False,
)
for _name, _make, _names in (
    ("pat", b.pre("glpat-", 20, b.B64URL), "GITLAB_TOKEN GITLAB_PRIVATE_TOKEN"),
    ("pat_routable", _routable("glpat-", "01."), "GITLAB_TOKEN GITLAB_API_TOKEN"),
    ("pat_routable_first", _routable("glpat-", ""), "GITLAB_TOKEN GL_TOKEN"),
    ("deploy_token", b.pre("gldt-", 20, b.B64URL), "CI_DEPLOY_PASSWORD"),
    ("runner", b.pre("glrt-", 20, b.B64URL), "RUNNER_TOKEN CI_SERVER_TOKEN"),
    ("runner_routable", _routable("glrt-t1_", "01."), "RUNNER_TOKEN"),
    ("runner_registration", b.pre("GR1348941", 20, b.B64URL), "REGISTRATION_TOKEN"),
    ("ci_job", b.shape("glcbt-", (b.HEX, 2), "_", (b.B64URL, 20)), "CI_JOB_TOKEN"),
    ("trigger", b.pre("glptt-", 40, b.HEX), "TRIGGER_TOKEN"),
    ("feed", b.pre("glft-", 20, b.B64URL), "FEED_TOKEN"),
    ("incoming_mail", b.pre("glimt-", 25, b.LOWER36), "INCOMING_MAIL_TOKEN"),
    ("agent", b.pre("glagent-", 50, b.B64URL), "AGENT_TOKEN KAS_TOKEN"),
    ("oauth_secret", b.pre("gloas-", 64, b.HEX), "GITLAB_CLIENT_SECRET"),
    ("scim", b.pre("glsoat-", 20, b.B64URL), "SCIM_TOKEN"),
    ("feature_flags", b.pre("glffct-", 20, b.B64URL), "UNLEASH_INSTANCE_ID"),
):
    known = "routable" not in _name
    add(f"gitlab_{_name}", _make, _names, GITLAB, "PRIVATE-TOKEN: {v}", sure=known)
add(
    "gitlab_session",
    b.pre("", 32, b.HEX),
    b.lines("Cookie: _gitlab_session={v}", "Set-Cookie: _gitlab_session={v}; path=/"),
    GITLAB,
    bare=False,
)
add(
    "bitbucket_app_password",
    b.shape("ATBB", (b.B62, 24), (b.UPPER_HEX, 8)),
    "BITBUCKET_APP_PASSWORD",
    "Bitbucket Cloud: App passwords",
    "https://{u}:{v}@bitbucket.org/acme/{w}.git",
)
add(
    "bitbucket_access_token",
    b.shape("ATCTT3xFfGN0", (b.B64URL, 171), "=", (b.UPPER_HEX, 8)),
    "BITBUCKET_TOKEN BB_AUTH_STRING",
    "Bitbucket Cloud: Repository access tokens",
    "https://x-token-auth:{v}@bitbucket.org/acme/{w}.git",
)
add(
    "gitea_token",
    b.pre("", 40, b.HEX),
    "GITEA_TOKEN FORGEJO_TOKEN GITEA_SERVER_TOKEN",
    "Gitea: API usage",
    "Authorization: token {v}",
    bare=False,
)
add(
    "npm_token",
    b.with_crc32("npm_"),
    "NPM_TOKEN NODE_AUTH_TOKEN",
    "npm Docs: About access tokens",
    "//registry.npmjs.org/:_authToken={v}",
)
add(
    "npm_uuid_token",
    b.uuid,
    b.lines("//registry.npmjs.org/:_authToken={v}", "//{h}/npm/:_authToken={v}"),
    "npm Docs: About access tokens (before 2021, private registries)",
    bare=False,
)
add(
    "pypi_token",
    _pypi,
    "TWINE_PASSWORD UV_PUBLISH_TOKEN POETRY_PYPI_TOKEN_PYPI",
    "PyPI Help: API tokens",
    "[pypi]\nusername = __token__\npassword = {v}",
)
add(
    "rubygems_key",
    b.pre("rubygems_", 48, b.HEX),
    "GEM_HOST_API_KEY RUBYGEMS_API_KEY",
    "RubyGems Guides: API key scopes",
    ":rubygems_api_key: {v}",
)
add(
    "crates_io_token",
    b.pre("cio", 32),
    "CARGO_REGISTRY_TOKEN",
    "crates.io: API tokens",
    '[registry]\ntoken = "{v}"',
    "cargo login {v}",
)
add(
    "nuget_key",
    b.pre("oy2", 43, b.LOWER36),
    "NUGET_API_KEY",
    "NuGet: Publish a package",
    "dotnet nuget push bin/*.nupkg --api-key {v}",
)
add(
    "dockerhub_pat",
    b.pre("dckr_pat_", 27, b.B64URL),
    "DOCKERHUB_TOKEN DOCKER_PASSWORD",
    "Docker Docs: Personal access tokens",
    "docker login -u {u} -p {v}",
)
add(
    "dockerhub_org_token",
    b.pre("dckr_oat_", 32, b.B64URL),
    "DOCKERHUB_TOKEN DOCKER_ORG_TOKEN",
    "Docker Docs: Organization access tokens",
)
add(
    "docker_config_auth",
    _docker_value,
    _docker_auth,
    "Docker Docs: docker login, credential stores",
    bare=False,
)
add(
    "jfrog_api_key",
    b.shape("AKCp", (b.DIGITS, 1), (b.B62, 68)),
    "JFROG_API_KEY ARTIFACTORY_API_KEY",
    "JFrog: API key",
    "X-JFrog-Art-Api: {v}",
)
add(
    "jfrog_reference_token",
    _jfrog_reference,
    "JF_ACCESS_TOKEN ARTIFACTORY_TOKEN",
    "JFrog: Reference tokens",
)
add("hex_pm_key", b.pre("", 32, b.HEX), "HEX_API_KEY", "Hex.pm: Keys", bare=False)
add("clojars_token", b.pre("CLOJARS_", 60, b.HEX), "CLOJARS_PASSWORD", "Clojars wiki")
add(
    "sourcegraph_token",
    b.shape("sgp_", (b.HEX, 16), "_", (b.HEX, 40)),
    "SRC_ACCESS_TOKEN",
    "Sourcegraph: Creating an access token",
)
add(
    "terraform_cloud",
    b.shape((b.B62, 14), ".atlasv1.", (b.B62, 67)),
    "TF_TOKEN_app_terraform_io TFE_TOKEN",
    "HCP Terraform: API tokens",
    'credentials "app.terraform.io" {\n  token = "{v}"\n}',
)
add("pulumi", b.pre("pul-", 40, b.HEX), "PULUMI_ACCESS_TOKEN", "Pulumi: Access tokens")
add(
    "circleci_pat",
    b.shape("CCIPAT_", (b.B58, 22), "_", (b.HEX, 40)),
    "CIRCLECI_TOKEN CIRCLE_TOKEN",
    "CircleCI: Managing API tokens",
    "Circle-Token: {v}",
)
add(
    "circleci_project",
    b.shape("CCIPRJ_", (b.B58, 22), "_", (b.HEX, 40)),
    "CIRCLECI_TOKEN",
    "CircleCI: Managing API tokens",
)
add(
    "buildkite_user_token",
    b.pre("bkua_", 40, b.HEX),
    "BUILDKITE_API_TOKEN BUILDKITE_TOKEN",
    "Buildkite: Token security",
    BEARER,
    sure=False,
)
add(
    "buildkite_agent_session",
    b.pre("bkaa_", 75),
    "BUILDKITE_AGENT_ACCESS_TOKEN",
    "Buildkite: Token security",
    sure=False,
)
add(
    "codecov_token",
    b.uuid,
    "CODECOV_TOKEN",
    "Codecov: Tokens",
    "codecov upload-process -t {v}",
    bare=False,
)
add(
    "drone_token",
    b.pre("", 32),
    "DRONE_TOKEN",
    "Drone CLI: Configuration",
    bare=False,
)
for _name, _prefix in (("project", "sqp_"), ("user", "squ_"), ("global", "sqa_")):
    add(
        f"sonar_{_name}",
        b.pre(_prefix, 40, b.HEX),
        "SONAR_TOKEN SONARQUBE_TOKEN",
        "SonarQube: Managing your tokens",
        "sonar-scanner -Dsonar.token={v}",
    )
add(
    "snyk_token",
    b.uuid,
    "SNYK_TOKEN",
    "Snyk: Authentication for API",
    "snyk auth {v}",
    bare=False,
)
