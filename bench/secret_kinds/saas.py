"""Credentials of services on the web: payments, mail, chat, watching, data."""

import hashlib

from bench.secret_kinds import base as b

KINDS, add = b.table("saas")
BEARER = "Authorization: Bearer {v}"


def _slack(prefix):
    return b.shape(prefix, (b.DIGITS, 12), "-", (b.DIGITS, 13), "-", (b.B62, 24))


def _slack_user(rng):
    ids = "-".join("1" + b.chars(rng, b.DIGITS, 11) for _ in range(3))
    return f"xoxp-{ids}-{rng.randbytes(16).hex()}"


def _stripe(prefix):
    return b.shape(prefix, "51", (b.B62, 14), (b.B62, 83))


def _sentry_org(rng):
    claims = {
        "iat": rng.randint(1700000000, 1796000000) + 0.5,
        "url": "https://sentry.io",
        "region_url": "https://us.sentry.io",
        "org": b.word(rng),
    }
    body = b.b64(b.compact(claims).encode()).rstrip("=")
    return f"sntrys_{body}_{b.b64(rng.randbytes(32)).rstrip('=')}"


def _grafana_service_account(rng):
    body = b.chars(rng, b.B62, 32)
    return f"glsa_{body}_{hashlib.sha256(body.encode()).hexdigest()[:8]}"


def _grafana_cloud(rng):
    claims = {
        "o": str(rng.randint(100000, 999999)),
        "n": b.word(rng),
        "k": b.chars(rng, b.B62, 24),
        "m": {"r": "prod-eu-west-2"},
    }
    return "glc_" + b.b64(b.compact(claims).encode())


def _discord(rng):
    snowflake = str(rng.randint(10**17, 12 * 10**17))
    head = b.b64(snowflake.encode()).rstrip("=")
    return f"{head}.{b.chars(rng, b.B64URL, 6)}.{b.chars(rng, b.B64URL, 38)}"


def _telegram(rng):
    return f"{rng.randint(10**9, 8 * 10**9)}:AA{b.chars(rng, b.B64URL, 33)}"


def _onepassword(rng):
    claims = {
        "signInAddress": "my.1password.com",
        "userAuth": {"method": "SRPg-4096", "alg": "PBES2g-HS256"},
        "email": f"{b.chars(rng, b.LOWER36, 13)}@1passwordserviceaccounts.com",
        "srpX": rng.randbytes(32).hex(),
        "muk": {"alg": "A256GCM", "k": b.b64url(rng.randbytes(32)), "kty": "oct"},
        "secretKey": "A3-" + b.chars(rng, b.UPPER36, 31),
        "deviceUuid": b.chars(rng, b.LOWER36, 26),
    }
    return "ops_" + b.b64url(b.compact(claims).encode())


def _mailgun(rng):
    return (
        f"{rng.randbytes(16).hex()}-{rng.randbytes(4).hex()}-{rng.randbytes(4).hex()}"
    )


def _supabase_service_role(rng):
    claims = {
        "iss": "supabase",
        "ref": b.chars(rng, b.LOWER, 20),
        "role": "service_role",
        "iat": rng.randint(1690000000, 1760000000),
        "exp": 2075000000,
    }
    return b.jwt({"alg": "HS256", "typ": "JWT"}, claims, rng.randbytes(32))


def _mapbox(rng):
    claims = {"u": b.word(rng), "a": "cm" + b.chars(rng, b.LOWER36, 23)}
    return f"sk.{b.b64url(b.compact(claims).encode())}.{b.chars(rng, b.B64URL, 22)}"


def _intercom(rng):
    return b.b64(f"tok:{b.uuid(rng).replace('-', '_')}:1:0".encode())


def _twitter_bearer(rng):
    return "A" * 22 + b.chars(rng, b.B62, 30) + "%3D" + b.chars(rng, b.B62, 50)


SLACK = "Slack: Token types"
STRIPE = "Stripe: API keys"
# name, maker, the variables, the page, then a line of its own
for _row in (
    ("slack_bot", _slack("xoxb-"), "SLACK_BOT_TOKEN SLACK_TOKEN", SLACK, BEARER),
    ("slack_user", _slack_user, "SLACK_USER_TOKEN SLACK_TOKEN", SLACK, BEARER),
    (
        "slack_app",
        b.shape("xapp-1-A", (b.UPPER36, 10), "-", (b.DIGITS, 13), "-", (b.HEX, 64)),
        "SLACK_APP_TOKEN",
        SLACK,
    ),
    (
        "slack_config",
        b.pre("xoxe.xoxp-1-", 166),
        "SLACK_CONFIG_TOKEN",
        "Slack: Rotating configuration tokens",
    ),
    ("slack_refresh", b.pre("xoxe-1-", 146), "refresh_token", SLACK),
    (
        "slack_webhook",
        b.shape(
            "https://hooks.slack.com/services/T",
            (b.UPPER36, 10),
            "/B",
            (b.UPPER36, 10),
            "/",
            (b.B62, 24),
        ),
        "SLACK_WEBHOOK_URL",
        "Slack: Incoming webhooks",
        "curl -X POST -d '{}' {v}",
    ),
    ("stripe_live", _stripe("sk_live_"), "STRIPE_SECRET_KEY", STRIPE, "curl -u {v}:"),
    ("stripe_test", _stripe("sk_test_"), "STRIPE_SECRET_KEY STRIPE_API_KEY", STRIPE),
    ("stripe_restricted", _stripe("rk_live_"), "STRIPE_RESTRICTED_KEY", STRIPE),
    ("stripe_webhook", b.pre("whsec_", 32), "STRIPE_WEBHOOK_SECRET", STRIPE),
    ("twilio_key_sid", b.pre("SK", 32, b.HEX), "TWILIO_API_KEY", "Twilio: API keys"),
    (
        "sendgrid",
        b.shape("SG.", (b.B64URL, 22), ".", (b.B64URL, 43)),
        "SENDGRID_API_KEY",
        "SendGrid: API keys",
        BEARER,
    ),
    ("mailgun", _mailgun, "MAILGUN_API_KEY", "Mailgun: API keys", "curl -u 'api:{v}'"),
    ("mailgun_old", b.pre("key-", 32, b.HEX), "MAILGUN_API_KEY", "Mailgun: API keys"),
    (
        "mailchimp",
        b.shape((b.HEX, 32), "-us", ("123456789", 1)),
        "MAILCHIMP_API_KEY",
        "Mailchimp: About API keys",
    ),
    (
        "brevo",
        b.shape("xkeysib-", (b.HEX, 64), "-", (b.B62, 16)),
        "BREVO_API_KEY SENDINBLUE_API_KEY",
        "Brevo: API keys",
        "api-key: {v}",
    ),
    (
        "resend",
        b.shape("re_", (b.B58, 8), "_", (b.B58, 24)),
        "RESEND_API_KEY",
        "Resend",
    ),
    (
        "hubspot_private_app",
        b.shape(
            "pat-na1-",
            (b.HEX, 8),
            "-",
            (b.HEX, 4),
            "-4",
            (b.HEX, 3),
            "-a",
            (b.HEX, 3),
            "-",
            (b.HEX, 12),
        ),
        "HUBSPOT_ACCESS_TOKEN",
        "HubSpot: Private apps",
        BEARER,
    ),
    (
        "shopify_admin",
        b.pre("shpat_", 32, b.HEX),
        "SHOPIFY_ACCESS_TOKEN",
        "Shopify API",
    ),
    ("shopify_secret", b.pre("shpss_", 32, b.HEX), "SHOPIFY_API_SECRET", "Shopify API"),
    (
        "square_access",
        b.pre("EAAA", 60, b.B64URL),
        "SQUARE_ACCESS_TOKEN",
        "Square: Access tokens",
        BEARER,
    ),
    ("square_secret", b.pre("sq0csp-", 43, b.B64URL), "SQUARE_APP_SECRET", "Square"),
    (
        "braintree_access",
        b.shape("access_token$production$", (b.LOWER36, 16), "$", (b.HEX, 32)),
        "BRAINTREE_ACCESS_TOKEN",
        "PayPal Braintree: Server SDK",
    ),
    (
        "plaid_access",
        b.pre_uuid("access-production-"),
        "PLAID_ACCESS_TOKEN",
        "Plaid API",
    ),
    ("notion", b.pre("ntn_", 46), "NOTION_TOKEN NOTION_API_KEY", "Notion API", BEARER),
    ("notion_old", b.pre("secret_", 43), "NOTION_TOKEN", "Notion API"),
    ("linear", b.pre("lin_api_", 40), "LINEAR_API_KEY", "Linear API"),
    (
        "airtable",
        b.shape("pat", (b.B62, 14), ".", (b.HEX, 64)),
        "AIRTABLE_API_KEY AIRTABLE_TOKEN",
        "Airtable: Personal access tokens",
        BEARER,
    ),
    (
        "asana",
        b.shape("2/", (b.DIGITS, 16), "/", (b.DIGITS, 16), ":", (b.HEX, 32)),
        "ASANA_ACCESS_TOKEN",
        "Asana: Personal access token",
        BEARER,
    ),
    (
        "atlassian",
        b.shape("ATATT3xFfGF0", (b.B64URL, 171), "=", (b.UPPER_HEX, 8)),
        "JIRA_API_TOKEN ATLASSIAN_API_TOKEN CONFLUENCE_TOKEN",
        "Atlassian: Manage API tokens",
        "curl -u {u}@{h}:{v} https://acme.atlassian.net/rest/api/3/myself",
    ),
    ("newrelic_user", b.pre("NRAK-", 27, b.UPPER36), "NEW_RELIC_API_KEY", "New Relic"),
    (
        "newrelic_license",
        b.shape((b.HEX, 36), "NRAL"),
        "NEW_RELIC_LICENSE_KEY",
        "New Relic: API keys",
    ),
    (
        "grafana_service_account",
        _grafana_service_account,
        "GRAFANA_TOKEN GRAFANA_AUTH",
        "Grafana: Service accounts",
        BEARER,
    ),
    ("grafana_cloud", _grafana_cloud, "GRAFANA_CLOUD_TOKEN", "Grafana Cloud: Policies"),
    (
        "sentry_org",
        _sentry_org,
        "SENTRY_AUTH_TOKEN",
        "Sentry: Token and credential formats",
        "[auth]\ntoken={v}",
    ),
    (
        "sentry_user",
        b.pre("sntryu_", 64, b.HEX),
        "SENTRY_AUTH_TOKEN",
        "Sentry: Token and credential formats",
        BEARER,
    ),
    (
        "dynatrace",
        b.shape("dt0c01.", (b.B32, 24), ".", (b.B32, 64)),
        "DT_API_TOKEN DYNATRACE_TOKEN",
        "Dynatrace: Token format",
        "Authorization: Api-Token {v}",
    ),
    (
        "postman",
        b.shape("PMAK-", (b.HEX, 24), "-", (b.HEX, 34)),
        "POSTMAN_API_KEY",
        "Postman: API keys",
        "X-Api-Key: {v}",
    ),
    (
        "figma",
        b.pre("figd_", 40, b.B64URL),
        "FIGMA_TOKEN",
        "Figma",
        "X-Figma-Token: {v}",
    ),
    ("contentful", b.pre("CFPAT-", 43, b.B64URL), "CONTENTFUL_MANAGEMENT_TOKEN", "CMA"),
    (
        "clerk",
        b.pre("sk_live_", 42),
        "CLERK_SECRET_KEY",
        "Clerk: Environment variables",
    ),
    ("supabase_access", b.pre("sbp_", 40, b.HEX), "SUPABASE_ACCESS_TOKEN", "Supabase"),
    (
        "supabase_secret",
        b.shape("sb_secret_", (b.B64URL, 22), "_", (b.B64URL, 8)),
        "SUPABASE_SECRET_KEY",
        "Supabase: API keys",
        "apikey: {v}",
    ),
    (
        "supabase_service_role",
        _supabase_service_role,
        "SUPABASE_SERVICE_ROLE_KEY",
        "Supabase: API keys",
    ),
    (
        "planetscale_token",
        b.pre("pscale_tkn_", 43, b.B64URL),
        "PLANETSCALE_SERVICE_TOKEN",
        "PlanetScale: Service tokens",
    ),
    (
        "planetscale_password",
        b.pre("pscale_pw_", 43, b.B64URL),
        "DATABASE_PASSWORD",
        "PlanetScale: Connection strings",
        "mysql://{u}:{v}@aws.connect.psdb.cloud/{w}?sslaccept=strict",
    ),
    (
        "neon_api",
        b.pre("napi_", 64, b.LOWER36),
        "NEON_API_KEY",
        "Neon: Manage API keys",
    ),
    (
        "neon_password",
        b.pre("npg_", 12),
        "PGPASSWORD",
        "Neon: Connect",
        "postgresql://{u}:{v}@ep-calm-{w}-a1b2.eu-central-1.aws.neon.tech/neondb",
    ),
    (
        "mongodb_atlas_client",
        b.pre("mdb_sa_sk_", 40, b.B64URL),
        "MONGODB_ATLAS_CLIENT_SECRET",
        "MongoDB Atlas: Service accounts",
    ),
    ("databricks", b.pre("dapi", 32, b.HEX), "DATABRICKS_TOKEN", "Databricks", BEARER),
    (
        "databricks_oauth",
        b.pre("dose", 32, b.HEX),
        "DATABRICKS_CLIENT_SECRET",
        "Databricks: OAuth M2M",
    ),
    (
        "confluent_secret",
        b.pre("cflt", 60, b.B64),
        "CONFLUENT_CLOUD_API_SECRET",
        "Confluent Cloud: API secret format",
        "sasl.jaas.config=PlainLoginModule required username='ABKEYID' password='{v}';",
    ),
    (
        "doppler_personal",
        b.pre("dp.pt.", 43),
        "DOPPLER_TOKEN",
        "Doppler: Token formats",
    ),
    (
        "doppler_service",
        b.shape("dp.st.prd.", (b.B62, 43)),
        "DOPPLER_TOKEN",
        "Doppler: Token formats",
    ),
    (
        "vault_service",
        b.pre("hvs.CAESI", 86, b.B64URL),
        "VAULT_TOKEN",
        "Vault: Token prefixes",
        "X-Vault-Token: {v}",
        "vault login {v}",
    ),
    ("vault_batch", b.pre("hvb.AAAAAQ", 148, b.B64URL), "VAULT_TOKEN", "Vault: Tokens"),
    ("onepassword", _onepassword, "OP_SERVICE_ACCOUNT_TOKEN", "1Password: Accounts"),
    ("telegram", _telegram, "TELEGRAM_BOT_TOKEN BOT_TOKEN", "Telegram Bot API"),
    (
        "discord_bot",
        _discord,
        "DISCORD_TOKEN DISCORD_BOT_TOKEN",
        "Discord: Reference, authentication",
        "Authorization: Bot {v}",
        "client.login('{v}');",
    ),
    (
        "discord_webhook",
        b.shape(
            "https://discord.com/api/webhooks/1",
            (b.DIGITS, 18),
            "/",
            (b.B64URL, 68),
        ),
        "DISCORD_WEBHOOK_URL",
        "Discord: Webhook resource",
    ),
    ("facebook", b.pre("EAAG", 180), "FB_ACCESS_TOKEN", "Meta: Access tokens"),
    ("twitter_bearer", _twitter_bearer, "TWITTER_BEARER_TOKEN", "X: App only", BEARER),
    (
        "linkedin_secret",
        b.shape("WPL_AP1.", (b.B62, 16), ".", (b.B62, 6), "=="),
        "LINKEDIN_CLIENT_SECRET",
        "LinkedIn: Client secrets",
    ),
    (
        "dropbox",
        b.pre("sl.u.", 1200, b.B64URL),
        "DROPBOX_ACCESS_TOKEN",
        "Dropbox: OAuth",
    ),
    ("typeform", b.pre("tfp_", 59, b.B64URL), "TYPEFORM_TOKEN", "Typeform: Tokens"),
    ("launchdarkly_sdk", b.pre_uuid("sdk-"), "LAUNCHDARKLY_SDK_KEY", "LaunchDarkly"),
    (
        "launchdarkly_api",
        b.pre_uuid("api-"),
        "LAUNCHDARKLY_ACCESS_TOKEN",
        "LaunchDarkly",
    ),
    ("segment", b.pre("sgp_", 64), "SEGMENT_TOKEN", "Segment: Public API"),
    (
        "mapbox_secret",
        _mapbox,
        "MAPBOX_SECRET_TOKEN",
        "Mapbox: Access tokens",
    ),
    (
        "tailscale_auth",
        b.shape("tskey-auth-k", (b.B58, 10), "CNTRL-", (b.B58, 32)),
        "TS_AUTHKEY TAILSCALE_AUTHKEY",
        "Tailscale: Key prefixes",
        "tailscale up --authkey={v}",
    ),
    (
        "tailscale_api",
        b.shape("tskey-api-k", (b.B58, 10), "CNTRL-", (b.B58, 32)),
        "TAILSCALE_API_KEY",
        "Tailscale: Key prefixes",
    ),
    ("posthog_personal", b.pre("phx_", 47), "POSTHOG_PERSONAL_API_KEY", "PostHog: API"),
):
    add(*_row)
for _row in (
    ("datadog_pat", b.pre("ddpat_", 40), "DD_ACCESS_TOKEN", "Datadog: PATs", BEARER),
    ("datadog_sat", b.pre("ddsat_", 40), "DD_ACCESS_TOKEN", "Datadog: Service tokens"),
    ("datadog_app_prefixed", b.pre("ddapp_", 34), "DD_APP_KEY", "Datadog: App keys"),
    (
        "pagerduty_prefixed",
        b.pre_uuid("pdus+_0XBPWQQ_"),
        "PAGERDUTY_TOKEN",
        "PagerDuty",
    ),
    ("intercom", _intercom, "INTERCOM_ACCESS_TOKEN", "Intercom"),
):
    add(*_row, sure=False)
for _row in (
    ("vault_old", b.pre("s.", 24), "VAULT_TOKEN", "Vault: Tokens before 1.10"),
    (
        "ngrok",
        b.shape("2", (b.B62, 26), "_", (b.B62, 21)),
        "NGROK_AUTHTOKEN",
        "ngrok: Authtokens",
        "ngrok config add-authtoken {v}",
    ),
    (
        "okta_token",
        b.pre("00", 40, b.B64URL),
        "OKTA_API_TOKEN",
        "Okta: API tokens",
        "Authorization: SSWS {v}",
    ),
    ("slack_signing", b.pre("", 32, b.HEX), "SLACK_SIGNING_SECRET", "Slack: Verifying"),
    ("twilio_auth", b.pre("", 32, b.HEX), "TWILIO_AUTH_TOKEN", "Twilio: Auth tokens"),
    ("postmark", b.uuid, "POSTMARK_SERVER_TOKEN POSTMARK_API_TOKEN", "Postmark"),
    ("paypal_secret", b.pre("E", 79, b.B64URL), "PAYPAL_CLIENT_SECRET", "PayPal REST"),
    ("braintree_key", b.pre("", 32, b.HEX), "BRAINTREE_PRIVATE_KEY", "Braintree"),
    ("plaid_secret", b.pre("", 30, b.HEX), "PLAID_SECRET", "Plaid API"),
    ("datadog_api", b.pre("", 32, b.HEX), "DD_API_KEY DATADOG_API_KEY", "Datadog"),
    ("datadog_app", b.pre("", 40, b.HEX), "DD_APP_KEY DATADOG_APP_KEY", "Datadog"),
    ("pagerduty", b.pre("u+", 18, b.B64URL), "PAGERDUTY_API_KEY", "PagerDuty"),
    ("algolia_admin", b.pre("", 32, b.HEX), "ALGOLIA_ADMIN_KEY", "Algolia: API keys"),
    ("okta_secret", b.pre("", 64, b.B64URL), "OKTA_CLIENT_SECRET", "Okta: Client auth"),
    ("auth0_secret", b.pre("", 64, b.B64URL), "AUTH0_CLIENT_SECRET", "Auth0"),
    ("mongodb_atlas_key", b.uuid, "MONGODB_ATLAS_PRIVATE_KEY", "MongoDB Atlas"),
    ("zendesk", b.pre("", 40), "ZENDESK_API_TOKEN", "Zendesk: API token"),
    ("box_secret", b.pre("", 32), "BOX_CLIENT_SECRET", "Box: Client credentials"),
    (
        "facebook_secret",
        b.pre("", 32, b.HEX),
        "FACEBOOK_APP_SECRET",
        "Meta: App secret",
    ),
    ("twitter_secret", b.pre("", 50), "TWITTER_API_SECRET", "X: API key and secret"),
    ("snowflake_password", b.password, "SNOWFLAKE_PASSWORD", "Snowflake: Connector"),
):
    add(*_row, bare=False)
