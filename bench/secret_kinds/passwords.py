"""Passwords where they are found: files, commands, headers, hashes."""

import base64
import json

from bench.secret_kinds import base as b

KINDS, add = b.table("password")


def _jwt(rng):
    claims = {
        "sub": b.uuid(rng),
        "iss": f"https://{b.host(rng)}/",
        "iat": rng.randint(1760000000, 1790000000),
        "exp": rng.randint(1790000000, 1800000000),
        "scope": "read write",
    }
    return b.jwt({"alg": "HS256", "typ": "JWT"}, claims, rng.randbytes(32))


def _basic(rng):
    return b.b64(f"{b.user(rng)}:{b.password(rng)}".encode())


def _kubernetes(value, rng):
    return (
        f"apiVersion: v1\nkind: Secret\nmetadata:\n  name: {b.word(rng)}-db\n"
        f"type: Opaque\ndata:\n  username: {b.b64(b.user(rng).encode())}\n"
        f"  password: {value}"
    )


def _kubernetes_value(rng):
    return b.b64(b.password(rng).encode())


def _pgpass(value, rng):
    return f"{b.host(rng)}:5432:{b.word(rng)}:{b.user(rng)}:{value}"


def _pgpass_value(rng):
    return b.password(rng).replace(":", "c")


def _hash(prefix, *runs):
    return b.shape(prefix, *((b.CRYPT, run) for run in runs))


def _flask(rng):
    body = b.b64url(b.compact({"_user_id": str(rng.randint(1, 9999))}).encode())
    return f"{body}.{b.b64url(rng.randbytes(4))}.{b.b64url(rng.randbytes(20))}"


def _rails_cookie(rng):
    parts = (b.b64(rng.randbytes(n)) for n in (180, 12, 16))
    return "--".join(parts).replace("=", "%3D").replace("+", "%2B").replace("/", "%2F")


def _django_key(rng):
    special = b.LOWER36 + "!@#%^*(-_=+)"
    return "django-insecure-" + b.chars(rng, special, 50)


def _npmrc(rng):
    return base64.b64encode(f"{b.user(rng)}:{b.password(rng)}".encode()).decode()


def _json_config(value, rng):
    text = f"Server={b.host(rng)};Database={b.word(rng)};User Id={b.user(rng)};"
    text += f"Password={value};TrustServerCertificate=True"
    return json.dumps({"ConnectionStrings": {"DefaultConnection": text}}, indent=2)


def _salts(value, rng):
    return f"define( 'AUTH_KEY',         '{value}' );"


def _salt_value(rng):
    return b.chars(rng, b.B62 + "!@#%^&*()-_[]{}~+=,.;:/?|", 64)


def _machine_key(value, rng):
    return (
        f'<machineKey validationKey="{value}" '
        f'decryptionKey="{rng.randbytes(24).hex().upper()}" validation="SHA1" />'
    )


# name, the lines, the page
for _name, _templates, _source in (
    ("netrc", ("machine {h} login {u} password {v}",), "curl: .netrc"),
    (
        "netrc_lines",
        ("machine {h}\n  login {u}\n  password {v}",),
        "curl: .netrc",
    ),
    ("my_cnf", ("[client]\nuser={u}\npassword={v}",), "MySQL: Option files"),
    ("mysql_option", ("mysql -h {h} -u {u} -p{v} {w}",), "MySQL: Command options"),
    ("pgpassword", ("PGPASSWORD={v} psql -h {h} -U {u} {w}",), "PostgreSQL: libpq"),
    (
        "libpq_string",
        ("host={h} port=5432 dbname={w} user={u} password={v}",),
        "PostgreSQL: Connection strings",
    ),
    (
        "curl_user",
        ("curl -u {u}:{v} https://{h}/api", "curl --user '{u}:{v}' https://{h}/v1"),
        "curl(1)",
    ),
    ("wget_password", ("wget --user={u} --password={v} https://{h}/a",), "wget(1)"),
    (
        "sshpass",
        ("sshpass -p {v} ssh {u}@{h}", "sshpass -p '{v}' scp a {h}:"),
        "sshpass",
    ),
    (
        "dotenv",
        ("DB_PASSWORD={v}", 'PASSWORD="{v}"', "export ADMIN_PASSWORD='{v}'"),
        "dotenv",
    ),
    (
        "mail_env",
        ("SMTP_PASS={v}", "EMAIL_HOST_PASSWORD={v}", "MAIL_PASSWORD={v}"),
        "SMTP",
    ),
    (
        "redis_conf",
        ("requirepass {v}", "masterauth {v}"),
        "Redis: Configuration",
    ),
    ("redis_cli", ("redis-cli -h {h} -a {v} ping",), "redis-cli"),
    (
        "compose",
        ("    environment:\n      POSTGRES_PASSWORD: {v}",),
        "Docker: postgres image",
    ),
    (
        "terraform",
        ('variable "db_password" {\n  default = "{v}"\n}', 'master_password = "{v}"'),
        "Terraform: Variables",
    ),
    (
        "ansible",
        ("ansible_become_pass: {v}", "{h} ansible_user={u} ansible_password={v}"),
        "Ansible: Inventory",
    ),
    (
        "helm_values",
        ("auth:\n  username: {u}\n  password: {v}", "adminPassword: {v}"),
        "Helm: Values files",
    ),
    (
        "jdbc_query",
        ("jdbc:postgresql://{h}:5432/{w}?user={u}&password={v}",),
        "PostgreSQL JDBC",
    ),
    (
        "jdbc_sqlserver",
        ("jdbc:sqlserver://{h}:1433;databaseName={w};user={u};password={v};",),
        "SQL Server JDBC",
    ),
    (
        "jdbc_oracle",
        ("jdbc:oracle:thin:{u}/{v}@{h}:1521/{w}",),
        "Oracle JDBC",
    ),
    (
        "spring",
        ("spring.datasource.password={v}", "spring:\n  datasource:\n    password: {v}"),
        "Spring Boot: Data properties",
    ),
    (
        "wp_config",
        ("define( 'DB_PASSWORD', '{v}' );", "define('DB_PASSWORD', \"{v}\");"),
        "WordPress: wp-config.php",
    ),
    (
        "web_config",
        ('<add name="Db" connectionString="Server={h};uid={u};pwd={v};" />',),
        "ASP.NET: Connection strings",
    ),
    (
        "xml_add_key",
        (
            '<add key="SmtpPassword" value="{v}" />',
            '<add key="ApiPassword" value="{v}"/>',
        ),
        "ASP.NET: appSettings",
    ),
    (
        "maven_settings",
        ("<server><id>{w}</id><password>{v}</password></server>",),
        "Maven",
    ),
    (
        "python_source",
        ('password = "{v}"', 'conn = connect(host="{h}", password="{v}")'),
        "Python DB API",
    ),
    ("javascript_source", ("  password: '{v}',", 'const dbPassword = "{v}";'), "knex"),
    ("windows_net_use", ("net use Z: \\\\{h}\\share /user:{u} {v}",), "net use"),
    ("sql_create_user", ("CREATE USER {u} WITH PASSWORD '{v}';",), "PostgreSQL"),
    ("sql_identified", ("CREATE USER '{u}'@'%' IDENTIFIED BY '{v}';",), "MySQL"),
    ("chpasswd", ("echo '{u}:{v}' | chpasswd",), "chpasswd(8)"),
    ("ldap_bind", ("ldapsearch -x -D cn=admin,dc=corp -w {v} -H ldap://{h}",), "LDAP"),
    ("odbc", ("Driver={PostgreSQL};Server={h};Uid={u};Pwd={v};",), "ODBC"),
    ("wpa", ('network={\n  ssid="{w}"\n  psk="{v}"\n}',), "wpa_supplicant.conf(5)"),
    (
        "openssl_passphrase",
        ("openssl enc -aes-256-cbc -pass pass:{v} -in a",),
        "openssl",
    ),
):
    add(_name, b.password, b.lines(*_templates), _source, bare=False)
for _name, _template in (
    ("postgres", "DATABASE_URL=postgres://{u}:{v}@{h}:5432/{w}?sslmode=require"),
    ("mysql", "mysql://{u}:{v}@{h}:3306/{w}"),
    ("redis", "REDIS_URL=rediss://default:{v}@{h}:6380/0"),
    ("redis_no_user", "redis://:{v}@{h}:6379/1"),
    ("amqp", "CELERY_BROKER_URL=amqp://{u}:{v}@{h}:5672//"),
    ("mongodb", "mongodb://{u}:{v}@{h}:27017/{w}?authSource=admin"),
    ("mongodb_srv", "MONGO_URI=mongodb+srv://{u}:{v}@{w}.ab1cd.mongodb.net/{w}"),
    ("http", "https://{u}:{v}@{h}/simple/"),
    ("ftp", "ftp://{u}:{v}@{h}/upload"),
    ("smtp", "SMTP_URL=smtps://{u}:{v}@{h}:465"),
    ("sqlalchemy", 'create_engine("postgresql+psycopg://{u}:{v}@{h}/{w}")'),
    ("git_credentials", "https://{u}:{v}@{h}"),
    ("proxy", "export https_proxy=http://{u}:{v}@{h}:3128"),
    ("clickhouse", "clickhouse://{u}:{v}@{h}:9440/{w}?secure=true"),
):
    add(
        f"url_{_name}",
        b.url_password,
        b.lines(_template),
        "RFC 3986: User information; the scheme's documentation",
        bare=False,
    )
for _name, _make, _templates, _source in (
    ("htpasswd_bcrypt", _hash("$2y$10$", 53), ("{u}:{v}",), "Apache: htpasswd"),
    ("htpasswd_apr1", _hash("$apr1$", 8, 22), ("{u}:{v}",), "Apache: htpasswd"),
    ("htpasswd_sha", b.random_b64(20, "{SHA}"), ("{u}:{v}",), "Apache: htpasswd"),
    ("shadow_sha512", None, ("{u}:{v}:20401:0:99999:7:::",), "crypt(5)"),
    ("shadow_yescrypt", None, ("{u}:{v}:20401:0:99999:7:::",), "crypt(5)"),
    ("shadow_md5", None, ("root:{v}:19700:0:99999:7:::",), "crypt(5)"),
):
    make = (
        _make
        or {
            "shadow_sha512": b.shape("$6$", (b.CRYPT, 16), "$", (b.CRYPT, 86)),
            "shadow_yescrypt": b.shape("$y$j9T$", (b.CRYPT, 22), "$", (b.CRYPT, 43)),
            "shadow_md5": b.shape("$1$", (b.CRYPT, 8), "$", (b.CRYPT, 22)),
        }[_name]
    )
    if _name == "htpasswd_apr1":
        make = b.shape("$apr1$", (b.CRYPT, 8), "$", (b.CRYPT, 22))
    add(_name, make, b.lines(*_templates), _source)
add("pgpass", _pgpass_value, _pgpass, "PostgreSQL: The password file", bare=False)
add("appsettings", b.password, _json_config, "ASP.NET Core: Configuration", bare=False)
add(
    "kubernetes_secret",
    _kubernetes_value,
    _kubernetes,
    "Kubernetes: Secret",
    bare=False,
)
add(
    "npmrc_auth",
    _npmrc,
    b.lines("_auth={v}", "//{h}/artifactory/api/npm/npm/:_auth={v}"),
    "npm Docs: npmrc",
    bare=False,
)
add("wp_salt", _salt_value, _salts, "WordPress: Secret keys", bare=False)
add(
    "machine_key",
    lambda rng: rng.randbytes(64).hex().upper(),
    _machine_key,
    "ASP.NET: machineKey element",
    bare=False,
)
add(
    "rails_master_key",
    b.pre("", 32, b.HEX),
    b.lines("RAILS_MASTER_KEY={v}", "echo {v} > config/master.key"),
    "Rails: Custom credentials",
    bare=False,
)
add(
    "django_secret_key",
    _django_key,
    b.lines("SECRET_KEY = '{v}'", 'SECRET_KEY = "{v}"', "DJANGO_SECRET_KEY='{v}'"),
    "Django: Settings",
)
add(
    "flask_secret_key",
    b.pre("", 64, b.HEX),
    b.lines("app.secret_key = '{v}'", 'app.config["SECRET_KEY"] = "{v}"'),
    "Flask: Quickstart, sessions",
    bare=False,
)
add(
    "laravel_app_key",
    b.random_b64(32, "base64:"),
    b.lines("APP_KEY={v}"),
    "Laravel: Encryption",
)
add(
    "jwt",
    _jwt,
    b.lines("Authorization: Bearer {v}", "ACCESS_TOKEN={v}", '"id_token": "{v}"'),
    "RFC 7519: JSON Web Token",
)
add(
    "jwt_secret",
    b.random_b64(48),
    b.lines("JWT_SECRET={v}", 'jwtSecret: "{v}"', "NEXTAUTH_SECRET={v}"),
    "Auth.js: Environment variables",
    bare=False,
)
add(
    "basic_header",
    _basic,
    b.lines(
        "Authorization: Basic {v}", "curl -H 'Authorization: Basic {v}' https://{h}"
    ),
    "RFC 7617: Basic authentication",
    bare=False,
)
add(
    "bearer_header",
    b.pre("", 40, b.B64URL),
    b.lines("Authorization: Bearer {v}", "{'Authorization': 'Bearer {v}'}"),
    "RFC 6750: Bearer token usage",
    bare=False,
)
for _name, _make, _template in (
    ("flask", _flask, "Cookie: session={v}"),
    ("rails", _rails_cookie, "Cookie: _{w}_session={v}"),
    ("django", b.pre("", 32, b.LOWER36), "Set-Cookie: sessionid={v}; HttpOnly; Path=/"),
    ("php", b.pre("", 26, b.LOWER36), "Cookie: PHPSESSID={v}"),
    ("java", b.pre("", 32, b.UPPER_HEX), "Cookie: JSESSIONID={v}; lang=en"),
    ("express", b.pre("s%3A", 32, b.B64URL), "Cookie: connect.sid={v}"),
):
    source = "The framework's documentation of sessions"
    add(f"cookie_{_name}", _make, b.lines(_template), source, bare=False)
