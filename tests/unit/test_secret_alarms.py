"""What stands where a secret would and is none raises no alarm."""

import base64
import random
import re
import string
from pathlib import Path

import pytest

from gitcp.secrets import chance, ed25519, heuristics, scanner, words
from gitcp.secrets.scanner import Fingerprints, Scanner
from tests.support.sample_secrets import sample_secrets

SCANNER = Scanner(Fingerprints(b"k" * 32))
TOKEN = sample_secrets()["github"][0]
ALPHABET = string.ascii_letters + string.digits
SMALL = string.ascii_lowercase + string.digits


def values(data):
    data = data if isinstance(data, bytes) else data.encode()
    return [hit.value for hit in SCANNER.scan([data])]


def random_base64(size, seed=1):
    return base64.b64encode(random.Random(seed).randbytes(size)).decode()


WORDS = base64.b64encode(b'{"session_id": "default"}').decode()
# The square roots of the first eight primes.
SHA512 = bytes.fromhex(
    "6a09e667f3bcc908bb67ae8584caa73b3c6ef372fe94f82ba54ff53a5f1d36f1"
    "510e527fade682d19b05688c2b3e6c1f1f83d9abfb41bd6b5be0cd19137e2179"
)
SENTENCE = base64.b64encode(b"a sentence that says nothing\n").decode()
PUBLIC_DER = base64.b64encode(
    bytes.fromhex("30820122300d06092a864886f70d01010105000382010f003082010a0282010100")
    + random.Random(45).randbytes(256)
    + bytes.fromhex("0203010001")
).decode()
SIGNATURE_DER = base64.b64encode(
    bytes.fromhex("3044022010") + random.Random(46).randbytes(65)
).decode()
PRIVATE_DER = base64.b64encode(
    bytes.fromhex(
        "308204bd020100300d06092a864886f70d0101010500048204a7308204a30201000282"
    )
    + random.Random(47).randbytes(500)
).decode()
SEALED_DER = base64.b64encode(
    bytes.fromhex(
        "3082052d305706092a864886f70d01050d304a302906092a864886f70d01050c301c04"
    )
    + random.Random(48).randbytes(500)
).decode()
UNSIGNED = base64.b64encode(b'{"alg":"none"}').decode().rstrip("=")
SIGNED = base64.b64encode(b'{"alg":"HS256"}').decode().rstrip("=")
CLEAN = {
    "names in programs": 'token = "load_pem_x509_certificate"',
    "camel case": "accessToken: stringTokens_1",
    "a call": "password = b64encode(raw)",
    "a type": "password: Uint8Array, salt: Uint8Array",
    "a path of a module": "from .v1_secret import V1Secret",
    "a file": "x_secret_INCLUDE X11/extensions/XKBstr.h",
    "a sentence": 'token("Must be a value between 0x80 and 0xFE.")',
    "an expression": "let token=a.x1===b.y2?c.z3:d.w4",
    "a pattern": 'token = "([A-Z0-9]|[A-Z0-9][A-Z0-9._-]*[A-Z0-9])"',
    "a URL": "auth: https://tools.example.net/html/rfc6750",
    "an address": "secret: 0x2dc3685cA34163952CF4A5395b0039c00DFa851D",
    "a number": "token: 0X102C,",
    "a counter": '--token "builtin:run_00000001:0"',
    "a commit": "IsFirstPass 615c19d9e03d4be2049c10db0151edbc3b229246",
    "words in a URL": "https://user:home-pass@host.internal/",
    "an escape in a URL": "https://user:a%20secret@host.internal/",
    "words in base64": "Authorization: Basic YWxpY2U6c2VjcmV0LXBhc3N3ZA==",
    "a line of a manifest": "a/token.py,sha256=cag4cq2C9Xvmks-CfgSOLNUdRRac-h6j8ocG2X,9",
    "within a digest": "v.py,sha256=qaN-fw_htIgKUVXoAuAEVgKxQu3tZ9qE2eiKkWIS7LA,160",
    "the id of an upload": '"UploadId": "xadcOB_7YPBOJuoFiQ9cz4P3Pe6FIZwO4f7wN93uHsNBEw97pl"',
    "lines that end in words": "the proxy of username_and_password=ab2\nephemeral=1\n",
    "a method": "s.getDerivedStateFromProps(next)",
    "dotted names": "XF86VidModeQueryVersionXRequest.XFree86-VidModeExtension: 9",
    "code between strings": '"Password:"),B?$e.create1("code",null)',
    "a file's number and words": '("auth", "0006_require_contenttypes_0002"),',
    "the path to a page": '"output_token": "Stream.Shards[-1].ShardId2"',
    "a place to fill in": '"PASSWORD": "[new_password_2]"',
    "numbers in a type": "encrypt(password: Uint8Array | string)",
    "a curve": 'passphrase: "Secp256k1"',
    "a standard": 'password: "ECMA-376"',
    "base64 of words": f'token = "{WORDS}"',
    "a time": '"PasswordLastUsed": "2016-09-08T21:47:36Z"',
    "a value that is filled in": 'password=f"password-{number}"',
    "types of a union": 'type A = "NATIVE_PASSWORD"|"POSTGRES_SCRAM_SHA_256"|"B"',
    "a path in capitals": "cache:process.env.X_HANDLER_PATH,maxMemorySize:0x3200000,b",
    "the name of a secret": "arn:aws:secretsmanager:r:a:secret:myselfmanagedADtestsecret-123456",
    "encoded ranges": 'decodeRanges("goE-HvxHBiI9CyDeiCei3dckUj9KNWFwBl9JeEFDFDFDC")',
    "a node's address": "enrtree://AKA3AM6LPBYEUDMVNU3BSVQJ5AD45Y7YPOHJLEF6W26QOE4V@a.b",
    "a type of elements": "'token_request': 'List[StorageV1TokenRequest]',",
    "a token of a model": '"eos_token": "<|unused_200054|>"',
    "a word of another language": '"password":"Jelszóvédelem"',
    "a version": "verdaccio-htpasswd: 13.0.0-next-8.29",
    "an argument": "you would pass `scale=1/255`. ",
    "a path of types": 'type_token("aws:s3/bucketObjectv2:BucketObjectv2")',
    "a memo": ":param str password: RFC2617 compliant password",
    "the id of a key": 'psk_id_hex = "456e6e796e20447572696e206172616e204d6f726961"',
    "words of another language": '"password":"Wi-Fiパスワード"',
    "a number to fill in": 'import_key(a, passphrase="wrong%d" % i)',
    "a cookie to remove": "document.cookie = 'paletteColors1=;path=/;max-age=0'",
    "a map of sources": "CAC5B6C,iBAAiBpwD,GAClB0rD,GAAQ1wL",
    "a constant": 'X_PASSWORD_SCRAM_SHA_256 = "X_PASSWORD_SCRAM_SHA_256"',
    "code between elements": '"<password>".concat(Gt(r),"</password>")',
    "what a signature is for": (
        "Authorization: AWS4-HMAC-SHA256 Credential=xxx/19700101/0/127/xxx4_request,"
    ),
    "a number used once": "Sec-WebSocket-Key: NDMyMTUzMjE2MzIxNzMyMQ==",
    "a mechanism": "imap://%HOSTIP:%PORT/800 --login-options AUTH=CRAM-MD5 curl -u u:CRAM-MD5",
    "a name to be typed": "<source>master password for %1</source><translation>p</translation>"
    ' password="1-database…"',
    "a database without a password": "PDO_TEST_DSN: dblib:host=127.0.0.1;dbname=m;version=7.0",
    "a user in a URL": "--> http://secret:@www.php.net/index.php?test=1: www",
    "a filter": "$config['password_ldap_search_filter'] = '(uid=%login)'; password=(uid=%login)",
    "a pattern of a reply": "$config['password_httpapi_expect'] = '/^ok$/i'; password='/^ok$/i'",
    "a sentence of another language": "['passwordnoseq'] = 'パスワードは123456やQWERTYの様な連続';",
    "a port to fill in": "http://%HOSTIP:%HTTPPORT?email=name@site.net/1118",
    "a version to compare": 'version_token: "ODhwVQ35xwlzRuoZEwKXucfu7583sPTzK48c5zoGd0g6o"',
    "a price": "<td>0.004元/千token</td> token: 输出0.008元/千token",
    "a constant of a header": "{AUTH_HMAC_SHA2_256_128, SADB_X_AALG_SHA2_256HMAC }, token,"
    " auth: SADB_X_AALG_SHA2_256HMAC",
    "a message's id": "-- See CAHU7rYZo_C4ULsAx_LAj8az9zqgrD8WDd4hTegDTMM1LMqrBsg@mail.example.net",
    "a mechanism in small letters": 'require_auth = "scram-sha-256" password=scram-sha-256',
    "an encoding": 'convert(password, "UTF-8", "UTF-16BE") password = "UTF-16BE"',
    "what a pointer leads to": "struct dcrypt_private_key *k1_priv = NULL;",
    "an address that is set": 'password="NAS-IP-Address=127.0.0.1"',
    "the name of an object": "$password = '.iso.org.dod.internet.private.enterprises.9.10.19.1'",
    "a cipher": '#define MAIL_CRYPT_KEY_CIPHER "aes-256-ctr" password = "aes-256-ctr"',
    "a section": "password: F.2.13",
    "an entry of a directory": 'password="uid=user1,ou=People,$BASEDN"',
    "an expansion": 'password="%{string:Tmp-String-0}"',
    "one digit": "secret_key: 11111111-1111-1111-1111-111111111111",
    "a list of versions": '"@aws-sdk/credential-provider-x" "3.19.0"\n  "@aws-sdk/types" "3.19.0"',
    "chance": "_yzXtLRxeu]:HSk9<l7=MbJ2+_T%.pw0lG=Ei4pA4+?J1O^n<nf0 pPwY:s#auv3,}?lhp9Z",
    "a constant renamed": "x.token = STRINGIFY_TIMETOKENS$1;",
    "a word with an accent of its own": '"userlogin-password": "Me\u030dt-ma"',
    "a word with an apostrophe": '"passwordreset-domain": "wangyu\u2019"',
    "a variable in a string": "and password:'{$password}'.",
    "a name in a URL": "mail+api://KEY:DOMAIN@default?region=R",
    "a name in two words in a URL": "octopush://userLogin:apiKey@host.test?from=H",
    "a selector": 'document.querySelector(password,"[type=password]"),password="[type=password]"',
    "a list of ciphers": (
        '"NORMAL:+ECDHE-PSK:-VERS-ALL:+VERS-TLS1.0:-CURVE-ALL:+CURVE-SECP256R1"'
    ),
    "a list of groups": '"NORMAL:-KX-ALL:+PSK:%DUMBFW:-GROUP-ALL:+GROUP-FFDHE2048"',
    "the id of a right": 'ResetPassword = "00299570-246d-11d0-a768-00aa006e0529"',
    "a number in a registry": '"EnablePlainTextPassword"=dword:00000001',
    "what an option takes": ".Op Fl Fl private-key=HX509-STORE",
    "lines of text in base64": (
        '"cyB-MyByb3V0ZXIgZmFpbHVyZXMgfmRvemVucyBvZiBtaW5vciAzMC1zZWNv"'
    ),
    "the digest of a public key": f"pin-sha256:{random_base64(32)}",
    "what a tool cut": f'showname="mechToken: {random.Random(3).randbytes(24).hex()}..."',
    "an option after an option": "tool --password --fido2-device=auto $img",
    "the layout of a request": 'string RAP_NetUserPasswordSet2_REQ = "zb16b16WW";',
    "a computation": "this.seed||1;token=48271*this._seed%n.MAX_INT32;",
    "a point of a public key": (
        f'"x": "Cu_{random_base64(30).replace("+", "A").replace("/", "B")}"'
    ),
    "a list of files": "pkcs11_token_raw_SOURCES = pkcs11/pkcs11-token-raw.c",
    "the name of a group": "{EVP_PKEY_X25519, OSSL_TLS_GROUP_ID_x25519},",
    "a URL in a cookie": '"Cookie: gpw_e24=http%3A%2F%2Fwww.oracle.com%2F; a=b"',
    "a salt": f'"salt": "{random.Random(4).randbytes(20).hex()}"',
    "a seed": f"seed={random.Random(5).randbytes(16).hex()}",
    "a path to fill in": "auth_to_local = DB:@srcdir@/an2ln-db.txt\nauth=DB:@srcdir@/a1",
    "a pointer with an underscore": "enum credentials_use_kerberos *_krb5_state)",
    "an option in a variable": 'pass="--pass=PASS:password"',
    "a variable after a colon": 'certificate="PKCS12:$a" pass=PKCS12:$a',
    "a name that a program made": '_ref4 = this, password = "_ref4$pass"',
    "the name of an attribute": "passwordAttribute: krb5key",
    "digits of hexadecimal numbers": 'token = "%[a-f0-9]{2}"',
    "the password of an anonymous user": 'password = "anon@ftp.com"',
    "a test that passed": "    --- PASS: TestVet/5 (0.07s)\n    --- PASS: Test\u263a/6 (0.0s)",
    "a word that stands for no password": "https://token:x-oauth-basic@host.test/r.git",
    "a function in a list": "* Added `PKCS8_PRIV_KEY_INFO`, `d2i_PKCS8_PRIV_KEY_INFO`,",
    "one of several": "%define pw_8 pw_512",
    "how a key is made": '--default-new-key-algo "ed25519/cert,sign+cv25519/encr" --quick',
    "whom a signature is of": '"X-Amz-Credential=testuser%2F20190624%2F#{region}%2Fs3"',
    "a setting in a comment": "// Pass: dynamic=0, static=1, 2.",
    "a variable behind a word": 'openssl aes-256-cbc -pass "pass:$PRIV_KEY_SECRET" -in a',
    "a host and a port": 'password = "www.python.org:080"',
    "a page of a manual": "@param pass qsort(3)",
    "a type in capitals": "StencilPassOp: D3D12_STENCIL_OP, PASS: D3D12_STENCIL_OP,",
    "a salt without a hash": 'password = "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ"',
    "the keys of a long map": "{\n"
    + "".join(
        f'    "{letter}wQ_{random_base64(30, 70 + at)[:39].replace("+", "a").replace("/", "b")}=":'
        f' "2{at}000000",\n'
        for at, letter in enumerate("ghijklmnr")
    )
    + f'    "rw_{"".join(random.Random(81).choices(ALPHABET, k=40))}=": "3"\n}}',
    "a key behind the signature that it verifies": (
        f'{{"signature": "{random.Random(90).randbytes(64).hex()}",\n'
        f'  "signingKey": "{random_base64(64, 91)}"}}'
    ),
    "a file that a program includes": 'const DepthPrePassPoint = "!#include<depth0PrePass>";',
    "what a DNS server knows a client by": (
        f"; EDNS: udp: 4096\n; COOKIE: {random.Random(92).randbytes(24).hex()}\n"
    ),
    "a sound in base64": f"data: UklGRqQ-{''.join(random.Random(93).choices(ALPHABET, k=60))}",
    "a word that says whose": "http://YourClientID:YourClientSecret@host.internal:1/",
    "a wallet's public key": (
        '"wallet_key": "xpub661MyMwAqRbcFtXgS5sYJABqqG9YLmC4Q1Rdap9gSE8NqtwybGhePY2gZ29ESFjqJ'
        'oCu1Rupje8YtGqsefD265TMg7usUDFdp6W1EGMcet8"'
    ),
    "a key that is encrypted": f"encrypted_key = '{random.Random(61).randbytes(32).hex()}'",
    "how to hash": "string(97) $argon2id$v=19$m=65536,t=4,p=1$%s",
    "where a key is to go": (
        "p:`-----BEGIN PRIVATE KEY-----${t}`,c:s4})})," + "a1B2c3D4e5F6g7H8i9J0,k1L" * 9
    ),
    "where a token is": "'l2_token_address': '0x"
    + "6f373b346561036d98ea10fb3e60d2f4" * 2
    + "'",
    "a curve in a comment": "@param privateKey Secp256k1 private key.",
    "the id of a payment": f'"walletTxId": "{random.Random(2).randbytes(32).hex()}"',
    "a program in a string": f"x='{random_base64(96)}password:{random_base64(24)}'",
    "a table": f"key: [{','.join(map(str, random.Random(1).sample(range(64), 64)))}]",
    "a thing in a cloud": "* @example\n * pw-bp1a9yavgq3dgttvowun\n",
    "sets of ciphers": "'TLS-RSA-WITH-SEED-CBC-SHA', 'TLS-RSA-WITH-ARIA-128-CBC-SHA256',",
    "how often": '"reset_password": "20/m/ip,5/m/key",',
    "a name with the lengths of two digests": '"x_auth_hmac","x_auth_hmacsha512256_final","a"',
    "a day and a region": "X-Amz-Credential=ABC%2F20250820%2Fus-east-1&",
    "what is filled in": '"Password": f"{PERSON_V2_OID}13", pw = "md5{0}"',
    "a line behind a full one": f"SaltVal = {random.Random(4).randbytes(20).hex()}\nMsg = 1",
    "the point of a public key": f"pubkey: '{random.Random(5).randbytes(32).hex()}',",
    "a product": "pw = generator_256 * 1",
    "what is assigned to its own name": "self.p4passwd = p4passwd\nPWD_MIN = argon2id.PWD_MIN",
    "a pointer in a header": "} X1_0_OTHER_CREDENTIAL_V2, *PX1_0_OTHER_CREDENTIAL_V2;",
    "the last of a list": "\tX80211_KEY_MAX = __X80211_KEY_AFTER_LAST - 1\n",
    "a name in a registry": 'PASSWORD = "urn:oasis:names:tc:SAML:2.0:ac:classes:Password"',
    "a table of a parser": "kW'OOQR1_mOOQR1G3d1G3dOOQR1G3f1G3fO.YQ_O1G3fOOQR1G3k1G3kO7",
    "a key in a sentence": (
        'armored\n`"-----BEGIN EC PRIVATE KEY-----"` base64-encoded format, and the DER format\n'
        "is a shorter binary form of the same data, for theotherencodingofcharacters.\n"
    ),
    "letters in their order": "Invalid access token: abcdef123456",
    "an anonymous user": "ftp://anonymous:mail%40host1.org@ftp.host.test/pub",
    "a digest behind base64": (
        f'["{random_base64(60)}yPWe", "{random.Random(6).randbytes(64).hex()}"]'
    ),
    "the user of a shell": "`ssh://687fb701029421ae5549d998@ssh.host.test`",
    "an algorithm": 'setdefault("id_token_encrypted_response_enc", "A128CBC-HS256")',
    "a sentinel": 'customToken="__ES6-PROMISIFY--CUSTOM-ARGUMENTS__";',
    "what was taken out": "redacted.password = '(hidden)';",
    "a type at a version": "resource serverKey 'Vendor.Sql/servers/keys@2021-11-01' = {",
    "a public key for notices": (
        "--key=BL7ELU24fJTAlH5Kyl8N6BDCac8u8li_U5PIwG963MOvdYs9s7LSzj8x_7v7RFdLZ9Eap50PiiyF5K0TDAis7t0"
    ),
    "a public key in a comment": f"// the public key\nnew AcmeWebhook('{random_base64(32)}');",
    "a version of a module": '("resetPassword", "vim.version.v9_1_0_0", F_OPTIONAL)',
    "a line of what is encrypted": (
        "OKOawDo13gRp2ojaHV7LFpZcgV7T6DVZKTyKOMTYUmKoTCVJRgckCL9kiMT03JGe\n"
        "ipsEdY3mx_etLbbWSrFr05kLzcSr4qKAq7YN7e9jwQRb23nfa6c9d-StnImGyFDb\n"
    ),
    "a salt of words": '"salt": b"joserfc:OKP:PBKDF2:Ed25519",',
    "pairs of a parser": "Q8}8]Q9O8^ Q9j9_Q9k9aQ9l9cQ9m9fQ9n9hQ9q9oQ9r9pQ9t9sQ9w:QU",
    "a colour": 'mw="#84613daa",pw="#98676a",bw="#dc3958"',
    "another name of it": "NAME ( 'passwordMin8bit' 'pwdMin8bit' ) DESC 'a'",
    "a rule of a grammar": "# passwd    = 1*SAFE ; MUST accept up to 255 octets",
    "ciphers that are left out": "b'!DES:!MD5:!PSK:!aECDH:!EDH-DSS-DES-CBC3-SHA:'",
    "a class of a module": "class J extends docGenJobBaseV2025R0_3.DocGenJobBaseV2025R0 {",
    "the number of a public key": (
        '"kty":"RSA","n":"wji8Hk1TfEP_SHGnRcMh9LUslx4pQGMpLssQSIvMXJrJfsz7OZNqPSOgjhefwldiEg"'
    ),
    "where a cipher begins": "secretIv: '16eu2GxWu4Wo/ly1uOas6Q==',",
    "a string of two lines": (
        'key=(\n    "BOrnIslXrUow2VAzKCUAE4sIbK00daEZCswOcf8m3T"\n'
        '    "F8V82B-OpOg5JbmYLg44kRcvQC1E2gMJshsUYA-_zMPR8"\n)'
    ),
    "a field": "word: de       \t\ttoken parent:4-5-du\nword: devient \t\ttoken parent:11-devient",
    "words of a model": "'\u0120pass-01', '\u0120happy-01', '\u0120assume-02'",
    "the time of a migration": "('authtoken', '0002_auto_20160226_1747'),",
    "a word that is not cut": (
        f'a = "{"b" * 20}"\n"{"c" * 172}",\nPRIVATE_KEY = SLIP10Ed25519Blake2bPrivateKey\n'
    ),
    "a string in a list behind a name": (
        '["DEFAULT_TOKENS_DATA","Kq7vXb2NfTz9RmPd4WcYh8LsJg3EuAa6"]'
    ),
    "a salt, whatever it is": f'salt = "{random_base64(33, 22)}"',
    "words in base64 before another line": "Authorization: Basic QWxpY2U6b3BlbiBnYXRlcw==and",
    "a name that a bundler counts": '"lastIndex","back","token","Container$5$1","AtRule$3$1"',
    "an argument behind a name": "loader = HexLoader(dongle, 0xE0, True, secret, scpv3=True)",
    "a point of another curve": (
        'ISSUER_KEY = "0490f5c9d15a0134bb019d2afd0bf297149738459706e7ac5be4abc350a1f818057224fce12e'
        'c9a65de18ec34d6e8c24db927835ea1692b14c32e9836a75dad609"'
    ),
    "digits of text": '"storage_key": "0x3a65787472696e7369635f696e646578",',
    "a call that is filled in": 'private_key=f"0x{ethereum_hdwallet.private_key()}"',
    "a name that begins like one": '["jb", "pwdk", "ak135f_no_mud"]',
    "a public key of two lines": (
        'key = (\n    "BDd3_hVL9fZi9Ybo2UUzA284WG5FZR30_95YeZJsiApwXKpNcF1rRPF3foI"\n'
        '    "iBHXRdJI2Qhumhf6_LFTeZaNndIo"\n)'
    ),
    "a table of small numbers": f"a=[{','.join(str(16 + 7 * at % 59) for at in range(64))}]",
    "numbers of a test, made by chance": (
        f'"ciphertext": [{", ".join(map(str, random.Random(35).choices(range(256), k=64)))}]'
    ),
    "until when a transaction holds": f'lifetimeToken: "{random_base64(32, 36)}"',
    "the hash of a payment": (
        'Signer.pre_auth_tx("TCC3U63F5OJIG4VS6XCFUJGCQRRMNCVGASDGIZZEPA3AZ242K4JVOVKE", 2)'
    ),
    "a language of a country": '"en-PN": "en-001", "en-PW": "en-001"',
    "a class of a module, bare": "password = keys.loading._plugins.identity.v2:Password",
    "several parameters": '"token", "secret", "foo=1%2C2%2C3&bar=1%2B2"',
    "an address with parameters": '"dsn": "hostname:port/service?timeout=30&expire=60",',
    "a protocol and its version": "help='Client secret for OAuth2.0',",
    "a name to which a list is added": "dhSinglePass_sha1kdf = x9_63_scheme + (3, )",
    "what holds its own name": (
        'ResetPassword = "kit#ResetPasswordResponse", RESET_PASSWORD = "/v1/a:resetPassword",'
        " PW91    GGA_X_PW91+GGA_C_PW91    Wang"
    ),
    "a pattern of a token": "(?P<a>secret_sample_ab85fc6f8d7638cf1c11da812da308d43_[0-9a-z]{5})",
    "a page in prose": "Next page token: eav1OzQB0OM8rLdGXOEsyQWSG\n",
    "what it stands for": 'password: "secret-4-levels", b: "a_password_of_at_least_32_chars"',
    "bytes that count": f'"SharedSecret": "{base64.b64encode(bytes(range(32))).decode()}"',
    "what a digest begins with": f"k=[{', '.join(map(str, SHA512))}]",
    "what shows whose a host is": f"key_authorization='foo.{random_base64(30, 8)}'",
    "what a map of policies finds by": (
        f'name:"Overprivileged",policies:{{{random.Random(13).randbytes(32).hex()}:"Some"}}'
        f',keyed:{{"key":{{"{random.Random(14).randbytes(32).hex()}": "Other"}}}}'
    ),
    "an id of one that is privileged": (
        f'"privileged_role": "{random.Random(15).randbytes(32).hex()}"'
    ),
    "the digest of an empty password": (
        'oldPwdHashNT="31d6cfe0d16ae931b73c59d7e0c089c0", password='
        "'d41d8cd98f00b204e9800998ecf8427e' secret: 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
    ),
    "lines of a picture": (
        f"kfK8lNctrktohaRWal4LrmUmHK2GVsR0 RBpR8hwrPWjtn7FihdkfKVWBYSgI7 {random_base64(57)} a"
    ),
    "what is encoded in most signs": (
        "+?2wpQhBZ?=co*ICyuGX28NJeul#Hz&P<Qgbdxjp6XxtN^a(jKE_UBR=<I_YgL#je>G7{!I)3At5e(a\n"
        "v{LOioerhGTJH4ad%{Nq3`46cwlyLhzc!PW=UKTzK%%?ErMPipTAc?#`aQ_a=!Lk=_P8;igs*L94&<M\n"
    ),
    "one in a row of names": (
        "'a':b'ATTq589876',\n'b':b'ATTm590480',\n'unicodePwd':b'ATTk589914',\n"
        "'dBCSPwd':b'ATTk589879',\n'ntPwdHistory':b'ATTk589918'"
    ),
    "what has no signature": (f"var token = '{UNSIGNED}.eyJzdWIiOiIxMjMifQ';"),
    "a word in a URL, encoded": '"rediss://:pass%3Aword@cache:6379/1")',
    "a name of a bundle": "var token = $9473610dff0d13f5$var$nullToken;",
    "what says that it is not one": (
        '"sk-ant-api03-FAKE0000000000000000000000000000abcdefghij", "gho_'
        + "0" * 32
        + 'FAKE"'
    ),
    "a salt for something": (
        f'"cipher_salt": "{random.Random(16).randbytes(16).hex()}"'
    ),
    "a page in base64": '"page": {"token": "eyJwYWdlIjogMn0=", "size": 100}',
    "constants with two lines": (
        "export { ASSOCIATED_TOKEN_ERROR__INVALID_OWNER, TOKEN_2022_ERROR__ACCOUNT_FROZEN,"
        " TOKEN_2022_ERROR__ALREADY_IN_USE, TOKEN_2022_ERROR__AUTHORITY_TYPE_NOT_SUPPORTED,"
    ),
    "a function in a map": "\t'msDS-ManagedPassword' : x2gmsa4Kq,\n",
    "a salt of 32 bytes": f"salt: '0x{random.Random(18).randbytes(32).hex()}',",
    "digits that count": f'TEST_SECRET = "{bytes(range(1, 33)).hex()}"',
    "a name of a bundle, imported": 'import {Pass as $5Whe3$Pass1} from "postprocessing";',
    "a function of a module": (
        "_1_res = mosek_fusion_Expr.__outer_1_Lmosek_4fusion_4Variable_2I_3D_3IIZ(_a_0,"
    ),
    "the id of a key in a list": 'actor_ids=["apikey_01h8441jn5pcwrfhwh78jqt8hl"],',
    "what a compiler calls its own": "claims = 1, jwt = _await$validateJwt$th2.jwt;",
    "a variable or nothing": "{'PERSONAL_ACCESS_TOKEN':_0x2716c8??void 0x0}",
    "a setting to pin": "Use framework='autogen' (v0.2) or pin AUTOGEN_VERSION=v0.2.",
    "a constant that is private": (
        f"bytes32 private constant SAFE_TX_TYPEHASH = 0x{random.Random(19).randbytes(32).hex()};\n"
        f"bytes32 private constant DOMAIN = 0x{random.Random(20).randbytes(32).hex()};"
    ),
    "how a key begins": (
        "-----BEGIN RSA PRIVATE KEY-----\n"
        "MIICXgIBAAKBgQDHikastc8+I81zCg/qWW8dMr8mqvXQ3qbPAmu0RjxoZVI47tvs...\n"
        "-----END RSA PRIVATE KEY-----"
    ),
    "a digest that a view begins in": (
        f'"x": "sha512-{random_base64(66, 21).replace("+", "a").replace("/", "b")}==",\n'
        f"{' ' * 81}'aB3dE5gH7jK9mN1p' +\n'qR2sT4uV6wX8yZ0a'\n"
    ),
    "a type with a number within": 'type_token("awsx:ecs:EC2Service")',
    "what has no signature, unnamed": (
        f'expected = "{UNSIGNED}.eyJzdWIiOiJmdWJhciIsImlhdCI6MS4wMDAsImV4cCI6MzYwMS4wMDB9"'
    ),
    "a user without a password": "expected = 'Basic Z2xvYmFsbWdyOg=='",
    "what counts visits": '"type": "GA-V4", "token": "G-6LYSMYK8DE",',
    "an entity": '<input type="hidden" name="password" value="&dtml-password;" />',
    "a salt in base64": '"iterations":100000,"salt":"FMRUPiyrN4Xf_8Hoh6YRXQ"}}',
    "what a function computes a secret from": (
        f'const shared = ecdh.computeSharedSecret("{random_base64(33, 31)}");'
    ),
    "what a function looks a secret up by": f'getSecret("{random_base64(24, 32)}")',
    "a program in the query of a URL": (
        "https://play.example.net/?code=let%20a1%3D%5Bb2%2C%22K9%22%5D%3B%0AfX4%28a1%2CQ7%29%3B"
    ),
    "what is too short to be issued": 'const token = "eyJhsw5c";',
    "a sentence in base64, with its line end": f'auth_token = "{SENTENCE}"',
    "such a sentence, by itself": f"Authorization: Basic {SENTENCE}",
    "the id of a session": "opened sess-5f4dcc3b5aa765d61d8327de",
    "the digest that names a session": f"opened sess-{random.Random(41).randbytes(20).hex()}",
    "a word in capitals that says what it is": 'client_secret: "VERYLONGSECRET9f8Xk2Lq7Zw4"',
    "words spelt with digits": 'npm_token: "t0k3n-H34r-pl34s3"',
    "more of them": 'secret = "s3cr3tK3yF0rT3sts"',
    "a password that is one word, so spelt": 'password = "s3cr3t"; other_pwd = "other-s3cr3t"',
    "a password that is the name of its user": "db://buildbot:bu1ldb0t@db.internal/b",
    "a password that is one letter": "InputArg['ClearPassword'] = 'AAAAAAAAAAAAAAAA'",
    "the name of a user of a test": 'form["reset_password"] = "test_user_1_"',
    "a thing of a cloud and its number": (
        "GENERATE_SESSION_TOKEN 'CaaS-QA[10-209-120-14_e772c8c0-ee55-4e8f-82f9-22576b494a62]'"
    ),
    "the token of a page": (
        '"nextPageToken": "CjQIz5W-w6HRxAI6KQoCGAEKAiAACgIYAQoCIAAKAhgTCg4qDGV1cm9wZS13ZXN0"'
    ),
    "what tells a search engine who owns a site": (
        '<meta name="google-site-verification" content="f_hV44nwPctDqY3hpyn52FduToodKfkuiJH588Q"/>'
    ),
    "a method behind the end of a line": "x = 1  # pw-0a49ee14c7f305f55ssm.delete_patch_baseline",
    "the token of a picture": (
        "https://h.example.net/o/a.jpeg?alt=media&token=4142e2a1-bf43-43b5-b7cf-6616be3fd4e3"
    ),
    "an example of a standard": "Authorization: Bearer mF_9.B5f-4.1JqM\ntoken=mF_9.B5f-4.1JqM",
    "what a cache finds something by": f'cache_key = "{random.Random(42).randbytes(32).hex()}"',
    "the digest of what is secret": f"checksum/secret: {random.Random(43).randbytes(32).hex()}",
    "a coin": f'"tokenMint": "{random_base64(33, 44).replace("+", "a").replace("/", "b")}"',
    "a public key in DER": f'jwt_secret: "{PUBLIC_DER}"',
    "a signature in DER": f'token = "{SIGNATURE_DER}"',
    "a password that is tried first, with digits behind": (
        'password="Admin12345"; pwd="PAssword_123!"'
    ),
    "an address for a password": "ftp://me:user%40domain.com@h.example.net/a",
    "a word with other letters, in base64": 'headers["Authorization"] == b"Basic w7xzZXI6cGFzcw=="',
    "one that says what it is": 'password = "somepassword123123"',
    "a word that stands for any": 'password="f00barbarbar"',
    "what is signed, in base64": "'token': 'QVdTNC1ITUFDLVNIQTI1NgoyMDE1MDgyNFQxMTIwNDFaCjIw'",
    "the digest of nothing, in base64": "'token': 'UFVUCjFCMk0yWThBc2dUcGdBbVk3UGhDZmc9PQphcHB'",
    "what to fill in, in brackets": "openssl enc -pass pass:[1JVMwQC-privkey-hex] -d -aes",
    "a word for a password and signs": (
        "db://user%25:pass%25%26%7C@h.internal/ PWD=pass+word; db://u:pass\U0001f40d\u6e2c@h.internal/"
    ),
    "two lines of a session's description": (
        "a=ice-pwd:ice-ufrag:403a81e1a=ice-options:trickle\r\n"
    ),
    "a file of a build": "sandbox-8bed43fcfebfe1862b17.html",
    "a variable that holds a password": "net_connect.password = srx2_pass\n",
    "a header that another one follows": (
        "PATCH /a/b/my-document HTTP/1.1\nAccept: application/json\n"
        "Authorization: Basic YWRtaW46c2VjcmV0\nPrefer: return=representation\n"
    ),
    "the letters in their order": "GITHUB_TOKEN=ghp_AbCdEfGhIjKlMnOpQrStUvWxYz1234567890",
    "a nonce that a standard prints": 'client_key = b"x3JJHMbDL1EzLkh9GBhXDw=="',
    "a word for a password with signs in it": 'password = "p@ss:word"',
    "a word of other letters in a header": 'b"Basic am9zw6k6c8mZY3LJmXQ="',
    "the name of a user": (
        "https://h.example.net/@MS4wLjABAAAA-0bQT0CqebTRr6I4IkYvMDMKSRSJHLNPBo5HrSklJwyA2psX"
    ),
    "a list in a URL": "'url': 'OLAK5uy_m4xAFdmMC5rX3Ji3g93pQe3hqLZw_9LhM'",
    "the name of a tag": "<TGji2z9aLyPf_nweGmtj-nLNNnt2Nlwj7yteGngiQzd2Sy937zt-Jo9eQmd/>",
    "the key of a badge": (
        "https://b.example.net/badge.svg?badge_key=SkxZcStBeExEdVJqQ2hWYnlWckpkNmNEY213SFp6WHFE"
    ),
    "a cookie whose value is a word": (
        'headers = {"Cookie": "ISAWPLB{A7F52349-3531-4DA9-8776-F74BC6F4F1BB}=value1"}'
    ),
    "a scheme whose parameters follow": (
        'h = {"Authorization": "AWS4-HMAC-SHA256 Credential=" + key}'
    ),
    "an id in a string of JSON": (
        r'"body": "{\"variants\": {}, \"id\": \"HTzpx_0j2ZWISCYHaRnkyy8hh65Vg28phaFKfZ7Olto\"}"'
    ),
    "an id in a list": (
        '"X-Amz-Cf-Id": [\n      "VRgxl_MdiD5GzMkiqqCgaJ45ZPoZa0ZCQpIKrWa5FeuSLco8FTrW8A=="\n]'
    ),
    "base64 that a prefix is part of": (
        "b'AHAlXxrabjcx_yBxGObnm_DkEQMJK1E69OHY3x3VxF5VXoKc93CG4GLoaPvphZQvZnt5EfExQoPktwOMIV'"
    ),
    "the accessor of a secret": (
        '"secret_id_accessor": "84896a0c-1347-aa90-a4f6-aca8b7558780"'
    ),
    "a resource that a token is for": "TOKEN_RESOURCE:abcd%25ef%3Ag%26hi",
    "a variable in a URL": '"https://token:{env:GITLAB_API_TOKEN}@git.internal/api"',
    "a token that is cut": '"token": "ya29.c.b0Aaekm1Le-n2NCqrzZjdMtjpbgRji2yhiJkO..."',
    "a place in a file": "unnecessary-pass:33:4:33:8:docstring_and_pass:Unnecessary pass",
    "a short text in base64": "CHAP_SECRET = 'V1RGNjRfXw=='",
    "the number of a page in its address": (
        "https://i.embed.internal/1/image?url=a&key=b1e305db91cf4aa5a86b732cc9fffceb"
    ),
    "where an object is": (
        "name=a&s3_key=t5_2bhxu0%2Ft2_5bn5wlvy%2Fa94a8fe5ccb19ba61c4c0873d391e987982fbbd3"
    ),
    "letters of one row of a keyboard": 'token = "1/fFAGRNJasdfz70BzhT3Zg"',
    "full lines of data in most signs": (
        "{Q6aWAK2mofX{8-=QmiI~l002J%0015U0000000000005+c1z!RHaA|NaUukZ1WpZv|Y%gtZWMyn~FL\n"
        "PsPWo>0HaCuNm0Rj{Q6aWAK2mofX{8%3egV<pP006TQ001Na0000000000005+ci(mo(aA|NaUukZ1W\n"
    ),
    "the address to which errors go": (
        "dsn: 'https://3e845233db8c4f43b4c4b9245f1d7bd6@o30291.reports.internal/4504599528079360'"
    ),
    "lines of a picture with blanks between them": (
        "OYaWCs+xEtf8UpPhxeq7YJgtRtvxTEd7 u3z721+WwcFhuffee0EwMDwR8iozzjiSKDcfoKwH59SLFKb8TPZOYZv"
        "ovNVJpTLbe9Oy5/tqPwZA 2a+mJxW+b6V1VNq8sXF1rNZMrN2VlT9dsB7rffaEe+PDZSJj/filGFgU5ys1B04Eam"
    ),
    "a word spelt with a digit": '"adminPass": "seekr3t"; "rabbit://bob:s3kret@db.internal/a"',
    "an account of an object store": "/v1/AUTH_4ebe3039674d4864a11fe0864ae4d905/images",
    "a scheme that a program joins with the rest": (
        "headers = {'Authorization': 'AWS4-HMAC-SHA256 ' + ', '.join(parts)}"
    ),
    "a key with a checksum, and a byte too many": (
        '"KxuACDviz8Xvpn1xAh9MfopySZNuyajYMZWz16Dv2mHHryznWUp3"'
    ),
    "letters typed without aim": "client_secret = 'sldvafkjw34509s8dfsdf'",
    "the keys of a keyboard in their order": "passwordSymbols = 'qwerty!@#$%^123456'",
    "a format's sign": '<magic value="-----BEGIN PRIVATE KEY-----" offset="0"/>\n' * 9,
}


@pytest.mark.parametrize("text", CLEAN.values(), ids=CLEAN)
def test_what_is_no_secret_raises_no_alarm(text):
    assert values(text) == []


_SEED = random.Random(38).randbytes(32)
PAIR = _SEED + ed25519.public_key(_SEED)
ALIKE = {
    "a token": f"token = {random_base64(24, 9)}",
    "one key of a map": (
        f'{{"wQ_{random_base64(30, 70)[:39].replace("+", "a").replace("/", "b")}=": "alice"}}'
    ),
    "a key before a signature": (
        f'{{"signingKey": "{random_base64(64, 91)}", "signature": "a"}}'
    ),
    "a cookie in a comment": (
        f"; COOKIE: session={random.Random(92).randbytes(24).hex()}\n"
    ),
    "a key that encrypts": f"encryption_key = '{random.Random(62).randbytes(32).hex()}'",
    "a hash behind its salt": (
        f"$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ${random_base64(32, 63)[:43]}"
    ),
    "a password that begins like a word": 'password = "YourH0use7xQ!"',
    "a password of chance, bare": "password = k3J9-dLq0:Xz7Yv.mP2w",
    "one of words, quoted": 'password = "correct7horse8battery"',
    "one of words, bare": "password: Winter2031!",
    "one that says a little": 'password = "secret-Zx81-quiet"',
    "what is named in prose": f"The client token: {random_base64(24, 10)}\n",
    "bytes in no order": f'"SharedSecret": "{random_base64(32, 11)}"',
    "a list of bytes": (
        f"key=[{', '.join(map(str, random.Random(12).choices(range(256), k=64)))}]"
    ),
    "a list of bytes that is called a pair": (
        f"PAYER_KEYPAIR=[{','.join(map(str, random.Random(37).choices(range(256), k=64)))}]"
    ),
    "a pair of keys, whatever it is called": f"[{', '.join(map(str, PAIR))}]",
    "what holds its name and more": 'api_key = "acme_api_key_k3J9dLq0Xz7Yv2mP"',
    "what holds its name and a little": 'api_key = "api_key_k3J9dLq0Xz"',
    "a word that a name is, too": 'pass = "pass4Word!"',
    "a token in a list": "[secret_sample_ab85fc6f8d7638cf1c11da812da308d43][1]",
    "a hash, once": '("x", 12, b"$2a$12$esIAHiQAJNNBrsr5V13l7.RFWWJI2BZFtQlkFyiWXjou05GyuREZa")',
    "what holds a word for it": 'password = "password-31x"',
    "a value in a map without commas": '"password": x2gmsa4Kq\n"user": b\n',
    "a key that is private": f"private key = 0x{random.Random(20).randbytes(32).hex()};",
    "one with a number": "'a':b'Abcd589876',\npassword = 'Zyxw589914'",
    "what has a signature": f"token = '{SIGNED}.eyJzdWIiOiIxMjMifQ.{random_base64(30, 17)}'",
    "a key that a map holds": f'keys:{{private_key:"{random.Random(13).randbytes(32).hex()}"}}',
    "one between signs": "Server=tcp:a.example.net,1433;Database=b;User=c@d;"
    "MultipleActiveResultSets=0;Password=k3J9dLq0Xz7Yv;TrustServerCertificate=1",
    "what a function is given": f'setSecret("{random_base64(24, 32)}")',
    "what holds the word that computes": f'target_secret = "{random_base64(24, 33)}"',
    "a key in the query of a URL": (
        f"https://a.example.net/?code={random_base64(30, 34).replace('+', 'a').replace('/', 'b')}"
    ),
    "a short one that is issued": 'token = "k3J9dLq0Xz7Y"',
    "a sentence with a token in it": (
        f'auth_token = "{base64.b64encode(b"sent with k3J9dLq0Xz7Yv2mPqR").decode()}"'
    ),
    "one in base64 that is all of it": base64.b64encode(
        b"token is k3J9dLq0Xz7Yv2mPqR"
    ).decode(),
    "a token for a session": f"with sess-{''.join(random.Random(49).choices(ALPHABET, k=40))}",
    "digits within no words": 'token = "t0kq3xH34rz5v1"',
    "a password of words spelt with digits": 'password = "Tr0ub4dorAndThr33"',
    "a private key in DER": f'jwt_secret: "{PRIVATE_DER}"',
    "one that is encrypted": f'jwt_secret: "{SEALED_DER[:400]}"',
    "a private key in DER that has no name": f"deploy with {PRIVATE_DER} then",
    "a cookie of chance": f'headers = {{"Cookie": "session={random_base64(30, 51)}"}}',
    "a scheme and what it sends": f"Authorization: Acme {random_base64(30, 52)}\n",
    "a token in a string of JSON": (
        rf'"body": "{{\"a\": \"acme_live_{random_base64(33, 53)[:40]}\"}}"'
    ),
    "a token whose prefix is two words": f"acme_prod_{random.Random(54).randbytes(20).hex()}",
    "a password in a URL, in brackets": "https://token:{k3J9dLq0Xz7Y}@git.internal/api",
    "a whole token": '"token": "ya29.c.b0Aaekm1Le-n2NCqrzZjdMtjpbgRji2yhiJkO"',
    "a short one in base64": f"CHAP_SECRET = '{random_base64(10, 55)}'",
    "a token before a host": "https://3e845233db8c4f43b4c4b9245f1d7bd6@git.internal/group/app.git",
    "a key in an address that is not a number": (
        f"https://i.embed.internal/1/image?key={''.join(random.Random(56).choices(ALPHABET, k=40))}"
    ),
    "a key beside a word for one": f'api_key = "{random.Random(42).randbytes(32).hex()}"',
    "a token of small letters": f"token = {''.join(random.Random(93).choices(SMALL, k=24))}",
    "a scheme whose value ends a string": f"'Authorization: Acme {random_base64(30, 94)} '",
    "an account with a token behind it": f"AUTH_token_{random.Random(95).randbytes(16).hex()}",
    "a header": f"Authorization: foo.{random_base64(30, 8)}",
}


@pytest.mark.parametrize("text", ALIKE.values(), ids=ALIKE)
def test_what_is_like_that_but_for_chance_is_found(text):
    assert len(values(text)) == 1


def test_tokens_of_one_issuer_are_found_as_keys_of_a_map():
    tokens = [
        f"acme_live_{''.join(random.Random(seed).choices(ALPHABET, k=32))}"
        for seed in range(100, 112)
    ]
    text = ",\n".join(f'"{token}": "user{at}"' for at, token in enumerate(tokens))
    assert values("{" + text + "}") == [token.encode() for token in tokens]


PREFIXES = ["AKIA", "AIza", "EAA", "LTAI", "AQE", "SK", "hf_", "r8_", "sk-", "fw_"]


@pytest.mark.parametrize("prefix", PREFIXES)
def test_a_prefix_within_base64_is_there_by_chance(prefix):
    before, after = random_base64(120, 1)[:150], random_base64(120, 2)
    joiner = "-" if "_" in prefix or "-" in prefix else "/"
    data = f"{before}{joiner}{prefix}{after}".replace("=", "")
    if joiner == "-":
        data = data.replace("+", "-").replace("/", "_")
    assert values(f'"data:image/png;base64,{data}"') == []


def test_the_lines_of_a_certificate_are_no_tokens():
    letters = random_base64(480)
    lines = [letters[at : at + 64] for at in range(0, len(letters), 64)]
    lines[3] = "AQEBBQADggEPADCC" + lines[3][16:]
    lines[5] = "EAAB" + lines[5][4:]
    text = "\n".join(lines)
    assert (
        values(f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n")
        == []
    )


@pytest.mark.parametrize(
    "form",
    [
        "cmd={} run",
        "sha: {}",
        "https://host.internal/a/long/path/of/many/words/that/goes/on/and/on/{}/file",
        "from .v1_secret import x  # {}",
        "\xfe\x01{}\x00\x02",
    ],
)
def test_a_token_beside_such_things_is_found(form):
    assert TOKEN.encode() in values(form.format(TOKEN).encode("latin-1"))


def test_random_bytes_are_no_text():
    raw = random.Random(3).randbytes(1 << 20)
    # Bytes that assign to a name by chance, one in five megabytes of such bytes.
    odd = (
        bytes([0xD2, 0x2E])
        + b"PW="
        + bytes([0xB3, 0xE5, 64, 86, 0x97, 97, 86, 36, 0xF6])
    )
    assert values(raw + odd + b"7\n" + raw[:1000]) == []
    assert values(raw + b"\nDB_PW=" + b"k3J9dLq0Xz\xc3\xa4" + b"7Yv\n") != []


def test_few_values_made_by_chance_look_like_words():
    rng = random.Random(5)
    lower = "abcdefghijklmnopqrstuvwxyz0123456789"
    for alphabet in (lower, lower + lower[:26].upper(), "0123456789abcdef"):
        made = ["".join(rng.choices(alphabet, k=24)).encode() for _ in range(2_000)]
        assert sum(map(words.worded, made)) < 0.02 * len(made)


def test_evidence_tells_chance_from_names_of_programs():
    names = {
        word
        for path in Path(scanner.__file__).parent.glob("*.py")
        for word in re.findall(
            rb"[A-Za-z_.]*[A-Za-z_]{4,}[A-Za-z_.]*", path.read_bytes()
        )
    }
    rng = random.Random(6)
    made = ["".join(rng.choices(ALPHABET, k=20)).encode() for _ in range(1_000)]
    assert len(names) > 500
    taken = [name for name in names if chance.evidence(name) >= chance.TOKEN]
    assert len(taken) < 0.02 * len(names)
    missed = [one for one in made if chance.evidence(one) < chance.TOKEN]
    assert len(missed) < 0.02 * len(made)
    # What a program ships as digits is judged as digits, with dashes or without.
    assert chance.evidence(b"7c9e6679-7425-40de-944b-e07fc1f90ae7") >= chance.ALONE


def test_base64_is_judged_by_what_it_says():
    assert not heuristics.proof(base64.b64encode(b"alice:quiet-word"))
    assert heuristics.proof(base64.b64encode(b"alice:k3J9dLq0Xz7Yv"))
    assert heuristics.proof(base64.b64encode(random.Random(1).randbytes(24)))


def test_values_within_values_are_looked_at_a_few_times(monkeypatch):
    judged: list[bytes] = []

    def plausible(value: bytes) -> bool:
        judged.append(value)
        return False

    monkeypatch.setattr(heuristics, "plausible", plausible)
    assert values("token=" * 5_000) == []
    # A run is as long as a value may be; it was judged once for each name in it.
    assert len(judged) < 5_000 * 6 / 512 * 12


def test_lines_are_counted_for_places_in_any_order():
    lines = [f"token_{at}: {'x' * at}" for at in range(20)]
    lines[4] = f'password="{TOKEN[4:16]}"'
    lines[7] = TOKEN
    lines[15] = TOKEN[:-3] + "aB3"
    hits = SCANNER.scan(["\n".join(lines).encode()])
    assert [hit.line for hit in hits] == [5, 8, 16]


def test_a_password_of_words_is_found_where_an_environment_needs_no_quotes():
    assert values("DB_PASSWORD=hunter2-correct-horse\n") == [b"hunter2-correct-horse"]
    assert values("password = hunter2-correct-horse\n") == []
