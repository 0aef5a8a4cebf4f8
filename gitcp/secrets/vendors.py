"""Table of vendors' tokens: what a token begins with or holds, and what must follow."""

_END = r"(?![A-Za-z0-9])"
_CLOSED = r"(?![A-Za-z0-9_-])"

# name, the start of the value, the rest
PREFIXES = (
    ("aws-access-key", "AKIA ASIA ABIA ACCA", rf"[A-Z2-7]{{16}}{_END}"),
    ("aws-bedrock-key", "ABSKQmVkcm9ja0FQSUtleS", r"[A-Za-z0-9+/]{80,}={0,2}"),
    ("aws-bedrock-key", "bedrock-api-key-", r"[\w+/=-]{40,}"),
    ("aws-appsync-key", "da2-", rf"[a-z0-9]{{26}}{_END}"),
    ("alibaba-key", "LTAI", rf"[A-Za-z0-9]{{17,26}}{_END}"),
    ("tencent-key", "AKID", rf"[A-Za-z0-9]{{29,36}}{_END}"),
    ("yandex-key", "AQVN", r"[\w-]{35,38}(?![\w-])"),
    ("yandex-token", "t1.", r"[\w-]{20,}\.[\w-]{80,}"),
    ("yandex-token", "y0_ y1_ y2_ y3_", r"[\w-]{50,}"),
    ("github-token", "ghp_ gho_ ghu_ ghr_", r"[A-Za-z0-9]{36,255}"),
    ("github-token", "ghs_", r"(?:[A-Za-z0-9]{36,255}|\d+_[\w.-]{60,})"),
    ("github-token", "github_pat_", r"[A-Za-z0-9_]{60,255}"),
    (
        "gitlab-token",
        (
            "glpat- gldt- glrt- glrtr- glcbt- glptt- glagent- glft- gloas- glimt- glffct-"
            " glsoat- glwt- GR1348941"
        ),
        r"[\w.-]{20,}",
    ),
    ("bitbucket-token", "ATBB ATATT3 ATCTT3", r"[\w=-]{28,}"),
    ("gitea-token", "gta_ gtr_ gto_", rf"[A-Za-z0-9]{{40,}}{_END}"),
    (
        "slack-token",
        "xoxa- xoxb- xoxp- xoxr- xoxs- xoxe- xoxc- xoxd- xapp- xwfp-",
        r"[\w%-]{20,}",
    ),
    ("slack-token", "xoxe.xox", r"[bp]-[\w-]{20,}"),
    (
        "slack-webhook",
        "hooks.slack.com/",
        r"(?:services|workflows|triggers)/[\w/-]{30,}",
    ),
    (
        "discord-webhook",
        "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
        r"\d{15,}/[\w-]{50,}",
    ),
    (
        "teams-webhook",
        "webhook.office.com/webhookb2/",
        r"[\w@-]{36,}/IncomingWebhook/[\w/-]{40,}",
    ),
    ("zapier-webhook", "hooks.zapier.com/hooks/catch/", r"\d{4,}/\w{6,}"),
    (
        "google-chat-webhook",
        "chat.googleapis.com/v1/spaces/",
        r"[\w-]{8,}/messages\?key=[\w%=&-]{40,}",
    ),
    (
        "ifttt-key",
        "maker.ifttt.com/trigger/",
        r"[\w-]{1,60}/(?:json/)?with/key/[\w-]{20,}",
    ),
    (
        "stripe-key",
        "sk_live_ sk_test_ rk_live_ rk_test_ sk_org_live_ sk_org_test_",
        r"[A-Za-z0-9]{20,}",
    ),
    ("webhook-secret", "whsec_ whsk_", r"[A-Za-z0-9+/]{24,}=*"),
    ("anthropic-key", "sk-ant-", r"[\w-]{24,}"),
    ("openai-key", "sk-proj- sk-svcacct- sk-admin- sk-None-", r"[\w-]{24,}"),
    # A session's id is shorter, or of hexadecimal digits.
    ("openai-key", "sess-", rf"(?![0-9a-f]+{_CLOSED})[A-Za-z0-9]{{36,}}{_CLOSED}"),
    ("openrouter-key", "sk-or-v1- sk-or-", r"[0-9a-f]{48,}"),
    ("ai-key", "sk-", rf"[A-Za-z0-9]{{32,}}{_CLOSED}"),
    (
        "ai-key",
        "nvapi- csk- fw_ fw- xai- gsk_ pplx- tvly- tvly-dev- tvly-prod- jina_ voyage- pa- psk-",
        r"[\w-]{30,}",
    ),
    (
        "ai-key",
        (
            "fc- e2b_ r8_ bb_live_ apify_api_ tgp_v1_ together_ pcsk_ lsv2_pt_ lsv2_sk_"
            " lsv2_ cpk_ gsk- zpka_"
        ),
        r"[\w.-]{28,}",
    ),
    ("langfuse-key", "sk-lf- pk-lf-", r"[0-9a-f-]{36}"),
    ("huggingface-token", "hf_ api_org_ hf_oauth_", rf"[A-Za-z0-9]{{30,45}}{_END}"),
    ("wandb-key", "wandb_v1_", r"[\w-]{30,}"),
    ("google-key", "AIza", r"[\w-]{35}(?![\w-])"),
    ("google-key", "AQ.Ab", r"[\w-]{40,}"),
    ("google-oauth", "GOCSPX-", r"[\w-]{24,}"),
    ("google-oauth", "ya29.", r"[\w.-]{30,}"),
    ("google-oauth", "1//0", r"[\w-]{40,}"),
    ("npm-token", "npm_", rf"[A-Za-z0-9]{{36}}{_END}"),
    ("pypi-token", "pypi-AgE pypi-AgN", r"[\w-]{50,}"),
    ("rubygems-token", "rubygems_", r"[0-9a-f]{48}"),
    ("crates-token", "cio", rf"[A-Za-z0-9]{{32}}{_END}"),
    ("nuget-key", "oy2", rf"[a-z0-9]{{43}}{_END}"),
    ("hex-token", "hexpm_ hexp_", r"[\w-]{30,}"),
    ("clojars-token", "CLOJARS_", r"[a-z0-9]{60}"),
    (
        "packagist-token",
        "packagist_ort_ packagist_oup_ packagist_out_ packagist_",
        r"[a-f0-9]{60,}",
    ),
    ("sendgrid-key", "SG.", r"[\w-]{16,32}\.[\w-]{30,64}"),
    ("brevo-key", "xkeysib- xsmtpsib-", r"[a-f0-9]{64}-[A-Za-z0-9]{16}"),
    ("mailgun-key", "key-", rf"[0-9a-f]{{32}}{_END}"),
    ("resend-key", "re_", rf"[A-Za-z0-9]{{8}}_[A-Za-z0-9]{{20,28}}{_END}"),
    ("postmark-key", "PM-", r"[TBA]-[\w-]{20,}"),
    ("mailersend-key", "mlsn.", r"[0-9a-f]{64}"),
    ("twilio-key", "SK", rf"[0-9a-f]{{32}}{_END}"),
    ("digitalocean-token", "dop_v1_ doo_v1_ dor_v1_", r"[0-9a-f]{64}"),
    (
        "shopify-token",
        "shpat_ shpca_ shppa_ shpss_ shptka_ shpua_ shpit_ shprka_ atkn_ shpcd_",
        r"[0-9a-zA-Z]{32,}",
    ),
    ("databricks-token", "dapi dose dkea", rf"[0-9a-f]{{32}}(?:-\d)?{_END}"),
    ("vault-token", "hvs. hvb. hvr.", r"[\w-]{24,}"),
    (
        "vault-token",
        "s. b. r.",
        r"(?=[A-Z]{0,20}[a-z0-9])[A-Za-z0-9]{24}(?![\w.(-])",
    ),
    (
        "doppler-token",
        "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. dp.said.",
        r"[\w.-]{40,}",
    ),
    ("linear-key", "lin_api_ lin_oauth_ lin_wh_", r"[A-Za-z0-9]{32,}"),
    ("notion-token", "ntn_ secret_", rf"[A-Za-z0-9]{{43,50}}{_END}"),
    ("figma-token", "figd_ figu_ figo_ figor_ figoh_ figuh_", r"[\w-]{38,}"),
    ("airtable-token", "pat", r"[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("asana-token", "1/ 2/", r"\d{12,18}(?:/\d{12,18})?:[0-9a-f]{32}"),
    (
        "hubspot-token",
        "pat-na1- pat-eu1- pat-na2- pat-na3- pat-ap1-",
        r"[0-9a-fA-F-]{36}",
    ),
    (
        "meta-token",
        "EAA",
        r"[A-Z][A-Za-z0-9]{80,}",
    ),
    ("instagram-token", "IGQVJ IGQWR IGAA", r"[\w-]{80,}"),
    ("twitter-token", "AAAAAAAAAAAAAAAAAAAAA", r"[A-Za-z0-9%]{60,}"),
    ("square-token", "sq0atp- sq0csp- sq0idp- EAAAE EAAAl", r"[\w-]{22,}"),
    (
        "paypal-token",
        "access_token$production$ access_token$sandbox$",
        r"[0-9a-z]{10,}\$[0-9a-f]{32}",
    ),
    (
        "plaid-token",
        "access-sandbox- access-development- access-production-",
        r"[0-9a-f-]{36}",
    ),
    ("adyen-key", "AQE", r"[A-Za-z0-9+/]{40,}={0,2}-[A-Za-z0-9+/=.{}()@\[\]*-]{16,}"),
    ("grafana-token", "glsa_ glc_ glcp_", r"[A-Za-z0-9+/_=]{32,}"),
    (
        "newrelic-key",
        "NRAK- NRJS- NRII- NRIQ- NRRA- NRAL- NRBR- NRSP- NRAA-",
        r"[\w-]{19,}",
    ),
    ("sentry-token", "sntrys_ sntryu_ sntrya_ sntryi_", r"[A-Za-z0-9+/=_]{60,}"),
    (
        "dynatrace-token",
        "dt0c01. dt0s01. dt0s02. dt0s03. dt0s08. dt0s09. dt0s16. dt0a01.",
        r"[A-Z0-9-]{8,24}\.[A-Z0-9]{60,}",
    ),
    (
        "honeycomb-key",
        "hcaik_ hcbik_ hcalk_ hcamk_ hcxik_ hcxlk_ hcxmk_ hcaic_",
        r"[a-z0-9]{40,}",
    ),
    ("posthog-key", "phx_ phs_ pha_ phr_", r"[A-Za-z0-9]{38,}"),
    ("datadog-key", "ddapp_ ddpat_ ddsat_", r"[A-Za-z0-9_]{30,}"),
    ("logfire-token", "pylf_v1_ pylf_v2_", r"[\w-]{30,}"),
    ("sonar-token", "sqp_ squ_ sqa_ sqco_", r"[0-9a-f]{40}"),
    ("snyk-token", "snyk_uat. snyk_sat.", r"[\w.-]{30,}"),
    ("supabase-key", "sbp_ sbp_v0_ sbp_oauth_ sb_secret_", r"[A-Za-z0-9_-]{30,}"),
    (
        "planetscale-token",
        "pscale_tkn_ pscale_pw_ pscale_oauth_ pscale_app_secret_",
        r"[\w.=-]{32,}",
    ),
    ("neon-key", "napi_", r"[a-z0-9]{50,}"),
    ("turso-token", "npg_", r"[A-Za-z0-9]{10,20}(?![A-Za-z0-9_])"),
    ("postman-key", "PMAK-", r"[0-9a-f]{24}-[0-9a-f]{34}"),
    ("postman-key", "PMAT-", r"[0-9A-Z]{26}"),
    ("pulumi-token", "pul-", r"[0-9a-f]{40}"),
    ("docker-token", "dckr_pat_ dckr_oat_", r"[\w-]{24,}"),
    ("jfrog-key", "AKCp", r"[A-Za-z0-9]{60,}"),
    ("jfrog-key", "cmVmdGtuOjAx", r"[A-Za-z0-9+/=]{40,}"),
    ("tailscale-key", "tskey-", r"[a-z]+-\w{8,}-\w{16,}"),
    ("netlify-token", "nfp_ nfc_ nfo_ nfu_ nfb_", r"[A-Za-z0-9]{36,}"),
    ("vercel-token", "vcp_ vci_ vca_ vcr_ vck_", r"[A-Za-z0-9]{24,}"),
    ("vercel-token", "vercel_blob_rw_", r"[A-Za-z0-9]{10,}_[A-Za-z0-9]{24,}"),
    ("cloudflare-token", "cfut_ cfat_ cfk_ cfoat_", r"[\w-]{36,}"),
    ("cloudflare-key", "v1.0-", r"[0-9a-f]{24}-[0-9a-f]{120,}"),
    ("fly-token", "fm1r_ fm1a_ fm2_ fo1_", r"[\w+/=,-]{40,}"),
    ("render-key", "rnd_", r"[A-Za-z0-9]{20,}"),
    ("railway-token", "rw_", r"[\w-]{30,}"),
    ("scalingo-token", "tk-us-", r"[\w-]{48}"),
    ("buildkite-token", "bkua_ bkat_ bkct_", r"[0-9a-f]{40}"),
    ("circleci-token", "CCIPAT_ CCIPRJ_", r"\w{20,}"),
    ("heroku-key", "HRKU-", r"[\w-]{36,}"),
    (
        "launchdarkly-key",
        "sdk- api- mob- rel-",
        r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}",
    ),
    ("1password-token", "ops_eyJ", r"[A-Za-z0-9+/=_-]{60,}"),
    (
        "1password-key",
        "A3-",
        (
            r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}"
            r"|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}"
        ),
    ),
    # DER of a private key or of PKCS #12, on one line: a sequence, then a version.
    ("private-key", "MII", r"[A-Z][A-Za-z0-9+/]{2}IBA[ADz][A-Za-z0-9+/]{180,}={0,2}"),
    ("private-key", "MIG", r"[A-Z]AgEAM[A-Za-z0-9+/]{120,}={0,2}"),
    ("private-key", "MHcCAQEE", r"[A-Za-z0-9+/]{140,}={0,2}"),
    ("infisical-token", "st.", r"[0-9a-f-]{24,36}\.[0-9a-f]{32,}\.[0-9a-f]{32,}"),
    (
        "age-secret-key",
        "AGE-SECRET-KEY-1 AGE-SECRET-KEY-PQ-1 AGE-PLUGIN-",
        r"[0-9A-Z-]{50,}",
    ),
    ("wallet-key", "xprv yprv zprv tprv", rf"[1-9A-HJ-NP-Za-km-z]{{100,112}}{_END}"),
    ("minisign-key", "RWRTY0Iy", r"[A-Za-z0-9+/=]{60,}"),
    ("signify-key", "RWRCSw", r"[A-Za-z0-9+/=]{60,}"),
    (
        "paseto",
        "v1. v2. v3. v4. k1. k2. k3. k4.",
        r"(?:local|secret)\.[\w-]{40,}",
    ),
    ("discord-token", "M N O", r"[A-Za-z0-9_-]{23,27}\.[\w-]{6}\.[\w-]{27,40}"),
    (
        "json-web-token",
        "eyJ",
        (
            r"[\w-]{14,}+\.(?:eyJ[\w-]{8,}+\.[\w-]{16,}"
            r"|[\w-]{0,}+\.[\w-]{10,}+\.[\w-]{16,}+\.[\w-]{16,})"
        ),
    ),
)

# The inner part, by which the token is found; the whole token is then matched around it.
_AZURE = r"(?<![A-Za-z0-9+/=])(?:{})(?![A-Za-z0-9+/=])"
INFIXES = (
    ("terraform-token", r"\.atlasv1\.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
    ("telegram-token", r":AA", r"(?<!\d)\d{8,10}:AA[\w-]{32,34}(?![\w-])"),
    ("azure-secret", r"\dQ~", r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])"),
    ("mailchimp-key", r"-us\d", rf"(?<![0-9a-f])[0-9a-f]{{32}}-us\d{{1,2}}{_END}"),
    ("newrelic-key", r"NRAL", rf"(?<![0-9A-Za-z])[0-9a-f]{{36}}(?:FFFF)?NRAL{_END}"),
    (
        "azure-key",
        r"JQQJ9|AZDO",
        _AZURE.format(r"[A-Za-z0-9]{40,76}(?:JQQJ99[A-Z0-9]|AZDO)[A-Za-z0-9]{3,40}"),
    ),
    (
        "azure-key",
        r"\+ASt|ACDb|\+AMC|\+ABa",
        (
            r"(?<![A-Za-z0-9+/])(?=[A-Za-z0-9+/]{86}==)[A-Za-z0-9+/]{70,82}"
            r"(?:\+ASt|ACDb|\+AMC|\+ABa)[A-Za-z0-9+/]{0,12}=="
        ),
    ),
    (
        "azure-key",
        r"AzSe|AzFu|AIoT|\+ACR|ASbE|\+AEh|APIM",
        _AZURE.format(
            r"(?=[A-Za-z0-9+/]{42,54}={0,2})[A-Za-z0-9+/]{32,46}"
            r"(?:AzSe|AzFu|AIoT|\+ACR|ASbE|\+AEh|APIM)[A-Za-z0-9+/]{4,10}={0,2}"
        ),
    ),
)
# A short prefix proves little, so the rest must look random.
WEAK = frozenset(
    {
        *("vault-token", "discord-token", "ai-key", "resend-key", "railway-token"),
        *("render-key", "meta-token", "adyen-key", "tencent-key", "alibaba-key"),
        *("turso-token", "azure-key", "openai-key", "notion-token", "google-oauth"),
        *("hex-token", "webhook-secret", "jfrog-key", "twitter-token"),
    }
)
