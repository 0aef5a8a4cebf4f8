"""Credentials of clouds and hosting companies."""

import json
import zlib

from bench.secret_kinds import base as b

KINDS, add = b.table("cloud")
BEARER = "Authorization: Bearer {v}"


def _aws_session(rng):
    return "IQoJb3JpZ2luX2Vj" + b.b64(rng.randbytes(rng.randint(380, 520)))


def _cloudflare(prefix):
    def make(rng):
        body = prefix + b.chars(rng, b.B62, 40)
        return f"{body}{zlib.crc32(body.encode()):08x}"

    return make


def _tunnel(rng):
    claims = {
        "a": rng.randbytes(16).hex(),
        "t": b.uuid(rng),
        "s": b.b64(b.b64(rng.randbytes(24)).encode()),
    }
    return b.b64(b.compact(claims).encode())


def _fly(rng):
    first = "fm2_lJPECAAAAAAA" + b.chars(rng, b.B64, rng.randrange(300, 360, 4))
    return "FlyV1 " + first + ",fm2_lJPETg" + b.b64(rng.randbytes(151))


def _service_account(rng):
    der = bytes.fromhex("308204be020100300d06092a864886f70d0101010500048204a8")
    body = b.b64(der + rng.randbytes(1192))
    wrapped = "\n".join(body[i : i + 64] for i in range(0, len(body), 64))
    begin, end = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
    return f"{begin}\n{wrapped}\n{end}\n".replace("\n", "\\n")


def _service_account_line(value, rng):
    project = f"{b.word(rng)}-{rng.randint(100000, 999999)}"
    return (
        '{\n  "type": "service_account",\n'
        f'  "project_id": "{project}",\n'
        f'  "private_key_id": "{rng.randbytes(20).hex()}",\n'
        f'  "private_key": "{value}",\n'
        f'  "client_email": "ci@{project}.iam.gserviceaccount.com"\n}}'
    )


def _aws_file(value, rng):
    key = "AKIA" + b.chars(rng, b.B32, 16)
    return rng.choice(
        (
            f"[default]\naws_access_key_id = {key}\naws_secret_access_key = {value}",
            f"AWS_ACCESS_KEY_ID={key}\nAWS_SECRET_ACCESS_KEY={value}",
            json.dumps({"AccessKeyId": key, "SecretAccessKey": value}),
            f'  secret_key = "{value}"\n  region     = "eu-central-1"',
        )
    )


def _sas(value, rng):
    return (
        f"https://{b.word(rng)}{rng.randint(10, 99)}.blob.core.windows.net/backups/"
        "db.bak?sv=2024-11-04&ss=b&srt=co&sp=rl&se=2026-12-31T08:00:00Z"
        f"&spr=https&sig={value}"
    )


def _sas_sig(rng):
    raw = b.b64(rng.randbytes(32))
    return raw.replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")


def _storage_connection(value, rng):
    account = b.word(rng) + str(rng.randint(10, 99))
    return (
        "AZURE_STORAGE_CONNECTION_STRING=DefaultEndpointsProtocol=https;"
        f"AccountName={account};AccountKey={value};EndpointSuffix=core.windows.net"
    )


AWS = "AWS IAM User Guide: Manage access keys"
add(
    "aws_access_key_id",
    b.pre("AKIA", 16, b.B32),
    "AWS_ACCESS_KEY_ID ACCESS_KEY",
    AWS,
    "aws configure set aws_access_key_id {v}",
)
add(
    "aws_temporary_key_id",
    b.pre("ASIA", 16, b.B32),
    "AWS_ACCESS_KEY_ID",
    "AWS IAM User Guide: Unique identifiers",
)
add("aws_secret_access_key", b.pre("", 40, b.B64), _aws_file, AWS, bare=False)
add(
    "aws_session_token",
    _aws_session,
    "AWS_SESSION_TOKEN AWS_SECURITY_TOKEN",
    "AWS STS: Temporary credentials",
    "X-Amz-Security-Token: {v}",
)
add(
    "gcp_api_key",
    b.pre("AIza", 35, b.B64URL),
    "GOOGLE_API_KEY GOOGLE_MAPS_API_KEY FIREBASE_API_KEY",
    "Google Cloud: Manage API keys",
    "https://maps.googleapis.com/maps/api/geocode/json?address=Bern&key={v}",
)
add(
    "gcp_service_account",
    _service_account,
    _service_account_line,
    "Google Cloud IAM: Create and delete service account keys",
)
add(
    "gcp_oauth_client_secret",
    b.pre("GOCSPX-", 28, b.B64URL),
    "GOOGLE_CLIENT_SECRET client_secret",
    "Google Identity: OAuth 2.0",
)
add(
    "gcp_access_token",
    lambda rng: "ya29.a0A" + b.chars(rng, b.B64URL, rng.randint(160, 220)),
    "GOOGLE_OAUTH_ACCESS_TOKEN access_token",
    "Google Identity: OAuth 2.0",
    BEARER,
)
add(
    "gcp_refresh_token",
    b.shape("1//0", (b.DIGITS, 1), (b.B64URL, 97)),
    "refresh_token GOOGLE_REFRESH_TOKEN",
    "Google Identity: OAuth 2.0",
)
add(
    "gcp_hmac_secret",
    b.pre("", 40, b.B64),
    b.lines("gs_access_key_id = GOOG1ERD5X2MQ7LZ\ngs_secret_access_key = {v}"),
    "Cloud Storage: HMAC keys",
    bare=False,
)
add(
    "azure_storage_key",
    b.shape((b.B64, 76), "+ASt", (b.B64, 5), (b.LAST, 1), "=="),
    "AZURE_STORAGE_KEY AZURE_STORAGE_ACCOUNT_KEY accountKey",
    "Azure Storage: Manage account access keys",
    sure=False,
)
add(
    "azure_storage_connection",
    b.random_b64(64),
    _storage_connection,
    "Azure Storage: Configure connection strings",
    bare=False,
)
add(
    "azure_sas",
    _sas_sig,
    _sas,
    "Azure Storage: Create a service SAS",
    bare=False,
)
add(
    "azure_client_secret",
    b.shape((b.B62, 3), "8Q~", (b.B62 + "_.-~", 33), (b.B62, 1)),
    "AZURE_CLIENT_SECRET ARM_CLIENT_SECRET clientSecret",
    "Microsoft Purview: Azure AD client secret",
)
add(
    "azure_devops_pat",
    b.shape((b.B62, 76), "AZDO", (b.B62, 4)),
    "AZURE_DEVOPS_EXT_PAT SYSTEM_ACCESSTOKEN",
    "Microsoft Purview: Azure DevOps personal access token",
)
add(
    "azure_devops_pat_old",
    b.pre("", 52, b.LOWER + "234567"),
    "AZURE_DEVOPS_PAT VSS_NUGET_ACCESSTOKEN",
    "Microsoft Purview: Azure DevOps personal access token",
    bare=False,
)
add(
    "azure_cosmos_key",
    b.shape((b.B64, 76), "ACDb", (b.B64, 5), (b.LAST, 1), "=="),
    b.lines(
        "AccountEndpoint=https://{w}.documents.azure.com:443/;AccountKey={v};",
        "COSMOS_KEY={v}",
    ),
    "Microsoft Purview: Azure Cosmos DB account access key",
)
add(
    "azure_service_bus",
    b.shape((b.B64, 33), "+ASb", (b.B64, 5), ("AEIMQUYcgkosw048", 1), "="),
    b.lines(
        "Endpoint=sb://{w}.servicebus.windows.net/;"
        "SharedAccessKeyName=RootManageSharedAccessKey;SharedAccessKey={v}"
    ),
    "Azure Service Bus: Shared access signatures",
)
add(
    "azure_container_registry",
    b.shape((b.B62, 42), "+ACR", (b.B62, 6)),
    b.lines("docker login {w}.azurecr.io -u {w} -p {v}", "ACR_PASSWORD={v}"),
    "Microsoft Purview: Azure Container Registry access key",
)
add(
    "azure_function_key",
    b.shape((b.B64URL, 44), "AzFu", (b.B64URL, 5), (b.LAST, 1), "=="),
    b.lines("https://{w}.azurewebsites.net/api/run?code={v}", "x-functions-key: {v}"),
    "Microsoft Purview: Azure Function master / API key",
)
add(
    "alibaba_access_key_id",
    b.pre("LTAI5t", 18),
    "ALIBABA_CLOUD_ACCESS_KEY_ID ALICLOUD_ACCESS_KEY",
    "Alibaba Cloud: Obtain an AccessKey pair",
)
add(
    "alibaba_access_key_secret",
    b.pre("", 30),
    "ALIBABA_CLOUD_ACCESS_KEY_SECRET ALICLOUD_SECRET_KEY accessKeySecret",
    "Alibaba Cloud: Obtain an AccessKey pair",
    bare=False,
)
add(
    "tencent_secret_id",
    b.pre("AKID", 32),
    "TENCENTCLOUD_SECRET_ID",
    "Tencent Cloud: Root account access keys",
)
add(
    "tencent_secret_key",
    b.pre("", 32),
    "TENCENTCLOUD_SECRET_KEY",
    "Tencent Cloud: Root account access keys",
    bare=False,
)
add(
    "oci_customer_secret_key",
    b.random_b64(32),
    "OCI_SECRET_KEY OCI_CUSTOMER_SECRET_KEY",
    "OCI: Working with customer secret keys",
    bare=False,
)
for _kind, _prefix in (("token", "dop"), ("oauth", "doo"), ("refresh", "dor")):
    add(
        f"digitalocean_{_kind}",
        b.pre(f"{_prefix}_v1_", 64, b.HEX),
        "DIGITALOCEAN_ACCESS_TOKEN DIGITALOCEAN_TOKEN",
        "DigitalOcean API: Token formats",
        BEARER,
        "doctl auth init -t {v}",
    )
add(
    "digitalocean_spaces_secret",
    b.pre("", 43, b.B64),
    "SPACES_SECRET_ACCESS_KEY",
    "DigitalOcean: Manage Spaces access keys",
    bare=False,
)
for _kind, _prefix, _names in (
    ("user_token", "cfut_", "CLOUDFLARE_API_TOKEN CF_API_TOKEN"),
    ("account_token", "cfat_", "CLOUDFLARE_API_TOKEN"),
    ("global_key", "cfk_", "CLOUDFLARE_API_KEY CF_API_KEY"),
):
    add(
        f"cloudflare_{_kind}",
        _cloudflare(_prefix),
        _names,
        "Cloudflare Fundamentals: Token formats",
        BEARER,
        sure=False,
    )
add(
    "cloudflare_old_token",
    b.pre("", 40, b.B64URL),
    "CLOUDFLARE_API_TOKEN CF_API_TOKEN",
    "Cloudflare Fundamentals: Create API token",
    bare=False,
)
add(
    "cloudflare_origin_ca",
    b.shape("v1.0-", (b.HEX, 24), "-", (b.HEX, 146)),
    "CLOUDFLARE_API_USER_SERVICE_KEY",
    "Cloudflare Fundamentals: Origin CA keys",
    "X-Auth-User-Service-Key: {v}",
)
add(
    "cloudflare_tunnel",
    _tunnel,
    "TUNNEL_TOKEN",
    "Cloudflare One: Tunnel tokens",
    "cloudflared service install {v}",
)
add(
    "hetzner_token",
    b.pre("", 64),
    "HCLOUD_TOKEN HETZNER_API_TOKEN",
    "Hetzner Cloud: Generating an API token",
    bare=False,
)
add(
    "linode_token",
    b.pre("", 64, b.HEX),
    "LINODE_TOKEN LINODE_CLI_TOKEN",
    "Linode API: Personal access tokens",
    bare=False,
)
add(
    "scaleway_secret_key",
    b.uuid,
    "SCW_SECRET_KEY",
    "Scaleway IAM: Create API keys",
    "X-Auth-Token: {v}",
    bare=False,
)
add(
    "fly_token",
    _fly,
    "FLY_API_TOKEN",
    "Fly.io: Access tokens",
    "Authorization: {v}",
)
add(
    "fly_personal_token",
    b.pre("fo1_", 43, b.B64URL),
    "FLY_ACCESS_TOKEN FLY_API_TOKEN",
    "Fly.io: fly auth token",
    "access_token: {v}",
)
for _kind, _prefix in (("token", "vcp_"), ("cli", "vca_"), ("integration", "vci_")):
    add(
        f"vercel_{_kind}",
        b.pre(_prefix, 56),
        "VERCEL_TOKEN",
        "Vercel changelog: New token formats and secret scanning",
        BEARER,
        sure=False,
    )
add(
    "vercel_old_token",
    b.pre("", 24),
    "VERCEL_TOKEN VERCEL_API_TOKEN",
    "Vercel: REST API authentication",
    "vercel deploy --prod --token {v}",
    bare=False,
)
add(
    "vercel_blob",
    b.shape("vercel_blob_rw_", (b.B62, 16), "_", (b.B62, 30)),
    "BLOB_READ_WRITE_TOKEN",
    "Vercel Blob: Security",
)
add(
    "netlify_token",
    b.pre("nfp_", 36),
    "NETLIFY_AUTH_TOKEN",
    "Netlify API: Authentication",
    BEARER,
)
add("render_key", b.pre("rnd_", 28), "RENDER_API_KEY", "Render API", BEARER)
add(
    "railway_token",
    b.uuid,
    "RAILWAY_TOKEN RAILWAY_API_TOKEN",
    "Railway: Public API tokens",
    bare=False,
)
add(
    "heroku_token",
    b.pre("HRKU-AA", 58, b.B64URL),
    "HEROKU_API_KEY",
    "Heroku changelog: OAuth token length",
    "machine api.heroku.com\n  login ops@{h}\n  password {v}",
)
add(
    "heroku_old_key",
    b.uuid,
    "HEROKU_API_KEY HEROKU_API_TOKEN",
    "Heroku: OAuth",
    bare=False,
)
add("vultr_key", b.pre("", 36, b.UPPER36), "VULTR_API_KEY", "Vultr API", bare=False)
add(
    "ovh_application_secret",
    b.pre("", 32, b.HEX),
    "OVH_APPLICATION_SECRET application_secret",
    "OVHcloud API: First steps",
    bare=False,
)
add(
    "ibm_cloud_key",
    b.pre("", 44, b.B64URL),
    "IBMCLOUD_API_KEY IC_API_KEY",
    "IBM Cloud: Managing user API keys",
    "ibmcloud login --apikey {v} -r eu-de",
    bare=False,
)
add(
    "exoscale_secret",
    b.pre("", 43, b.B64URL),
    "EXOSCALE_API_SECRET",
    "Exoscale: IAM",
    bare=False,
)
add(
    "backblaze_key",
    b.shape("K00", (b.DIGITS, 1), (b.B64, 27)),
    "B2_APPLICATION_KEY",
    "Backblaze B2: Application keys",
    bare=False,
)
add(
    "aiven_password",
    b.pre("AVNS_", 19, b.B64URL),
    b.lines("postgres://avnadmin:{v}@{h}:21699/defaultdb?sslmode=require"),
    "Aiven: Service passwords",
)
add(
    "yandex_api_key",
    b.pre("AQVN", 35, b.B64URL),
    "YC_API_KEY",
    "Yandex Cloud: Secret formats",
    "Authorization: Api-Key {v}",
)
