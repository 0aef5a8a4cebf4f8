"""Private keys and other key material, in the forms that tools write them."""

import gzip
import hashlib
from pathlib import Path
from textwrap import indent

from bench.secret_kinds import base as b

KINDS, add = b.table("key")
WORDS = (
    gzip.decompress(Path(__file__).with_name("bip39_english.txt.gz").read_bytes())
    .decode()
    .split()
)
BECH32 = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"


def _value(value, rng):
    return value


def _wrapped(text, width=64):
    return "\n".join(text[i : i + width] for i in range(0, len(text), width))


def _pem(label, head, count, headers=""):
    """Give a block of DER: its documented first bytes, then random ones."""

    def make(rng):
        body = _wrapped(b.b64(bytes.fromhex(head) + rng.randbytes(count)))
        return f"-----BEGIN {label}-----\n{headers}{body}\n-----END {label}-----"

    return make


def _pem_legacy_encrypted(rng):
    headers = (
        f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,{b.chars(rng, b.UPPER_HEX, 32)}"
    )
    return _pem("RSA PRIVATE KEY", "", 1200, headers + "\n\n")(rng)


def _pem_ec(rng):
    oid = "a00a06082a8648ce3d030107a14403420004"
    der = bytes.fromhex("30770201010420") + rng.randbytes(32)
    body = _wrapped(b.b64(der + bytes.fromhex(oid) + rng.randbytes(64)))
    return f"-----BEGIN EC PRIVATE KEY-----\n{body}\n-----END EC PRIVATE KEY-----"


def _field(raw):
    return len(raw).to_bytes(4, "big") + raw


def _openssh(rng):
    kind, public, check = b"ssh-ed25519", rng.randbytes(32), rng.randbytes(4)
    inner = check + check + _field(kind) + _field(public)
    inner += _field(rng.randbytes(32) + public) + _field(b.user(rng).encode())
    inner += bytes(range(1, 1 + -len(inner) % 8))
    raw = b"openssh-key-v1\0" + _field(b"none") * 2 + _field(b"")
    raw += (
        (1).to_bytes(4, "big") + _field(_field(kind) + _field(public)) + _field(inner)
    )
    label = "OPENSSH PRIVATE KEY"
    return f"-----BEGIN {label}-----\n{_wrapped(b.b64(raw), 70)}\n-----END {label}-----"


def _openssh_rsa_encrypted(rng):
    raw = b"openssh-key-v1\0" + _field(b"aes256-ctr") + _field(b"bcrypt")
    raw += _field(_field(rng.randbytes(16)) + (24).to_bytes(4, "big"))
    raw += rng.randbytes(1700)
    label = "OPENSSH PRIVATE KEY"
    return f"-----BEGIN {label}-----\n{_wrapped(b.b64(raw), 70)}\n-----END {label}-----"


def _crc24(raw):
    crc = 0xB704CE
    for byte in raw:
        crc ^= byte << 16
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1864CFB
    return crc & 0xFFFFFF


def _pgp(rng):
    raw = bytes.fromhex("95035e04") + rng.randbytes(1000)
    check = b.b64(_crc24(raw).to_bytes(3, "big"))
    label = "PGP PRIVATE KEY BLOCK"
    body = f"{_wrapped(b.b64(raw))}\n={check}"
    return f"-----BEGIN {label}-----\n\n{body}\n-----END {label}-----"


def _bech32(prefix, raw):
    bits = "".join(f"{byte:08b}" for byte in raw)
    bits += "0" * (-len(bits) % 5)
    data = [int(bits[i : i + 5], 2) for i in range(0, len(bits), 5)]
    values = [ord(c) >> 5 for c in prefix] + [0] + [ord(c) & 31 for c in prefix] + data
    polymod = 1
    for value in values + [0] * 6:
        top, polymod = polymod >> 25, (polymod & 0x1FFFFFF) << 5 ^ value
        for i, term in enumerate((0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD)):
            polymod ^= term if top >> i & 1 else 0
        polymod ^= 0x2A1462B3 if top >> 4 & 1 else 0
    polymod ^= 1
    data += [polymod >> 5 * (5 - i) & 31 for i in range(6)]
    return (prefix + "1" + "".join(BECH32[d] for d in data)).upper()


def _age(prefix):
    return lambda rng: _bech32(prefix, rng.randbytes(32))


def _age_file(value, rng):
    return f"# created: 2026-09-{rng.randint(10, 28)}T10:12:13+02:00\n{value}"


def _wireguard(rng):
    raw = bytearray(rng.randbytes(32))
    raw[0] &= 248
    raw[31] = raw[31] & 127 | 64
    return b.b64(bytes(raw))


def _jwk(value, rng):
    x, y = (b.b64url(rng.randbytes(32)) for _ in "xy")
    return f'{{"kty":"EC","crv":"P-256","x":"{x}","y":"{y}","d":"{value}","kid":"k1"}}'


def _jwk_rsa(value, rng):
    n = b.b64url(rng.randbytes(256))
    return f'{{"kty": "RSA", "e": "AQAB", "n": "{n}", "d": "{value}"}}'


def _ppk(value, rng):
    public = _wrapped(b.b64(_field(b"ssh-ed25519") + _field(rng.randbytes(32))))
    return (
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\n"
        f"Comment: {b.user(rng)}\nPublic-Lines: {len(public.splitlines())}\n{public}\n"
        f"Private-Lines: 1\n{value}\nPrivate-MAC: {rng.randbytes(32).hex()}"
    )


def _minisign(rng):
    raw = b"EdScB2" + rng.randbytes(32) + bytes.fromhex("0000000200000000")
    return b.b64(raw + bytes.fromhex("0000004000000000") + rng.randbytes(104))


def _mnemonic(count):
    def make(rng):
        entropy = rng.randbytes(count * 4 // 3)
        bits = "".join(f"{byte:08b}" for byte in entropy + b.digest(entropy)[:1])
        picks = (int(bits[i * 11 : i * 11 + 11], 2) for i in range(count))
        phrase = " ".join(WORDS[pick] for pick in picks)
        # The word is in the list, and would be taken for a placeholder.
        return make(rng) if "example" in phrase else phrase

    return make


def _base58check(raw):
    raw += b.digest(b.digest(raw))[:4]
    number, text = int.from_bytes(raw, "big"), ""
    while number:
        number, rest = divmod(number, 58)
        text = b.B58[rest] + text
    return text


def _wif(rng):
    tail = rng.choice((b"", b"\x01"))
    return _base58check(b"\x80" + rng.randbytes(32) + tail)


def _xprv(rng):
    raw = bytes.fromhex("0488ade4") + b"\x00" * 9 + rng.randbytes(32)
    return _base58check(raw + b"\x00" + rng.randbytes(32))


def _keystore(value, rng):
    return (
        f"storePassword={value}\nkeyPassword={value}\nkeyAlias=upload\n"
        f"storeFile=/home/{b.user(rng)}/upload-keystore.jks"
    )


def _solana(rng):
    return str(list(rng.randbytes(64))).replace(" ", "")


def _yaml_key(value, rng):
    return "tls_private_key: |\n" + indent(value, "  ")


def _ssh_host(value, rng):
    return "ssh_keys:\n  ed25519_private: |\n" + indent(value, "    ")


def _hex128(rng):
    return hashlib.sha512(rng.randbytes(64)).hexdigest()


RFC = "RFC 7468: Textual encodings of PKIX, PKCS and CMS structures"
RSA = "308204a40201000282010100"
PKCS8_RSA = "308204be020100300d06092a864886f70d0101010500048204a8308204a4"
PKCS8_EC = "308187020100301306072a8648ce3d020106082a8648ce3d030107046d306b0201010420"
ED25519 = "302e020100300506032b657004220420"
PBES2 = "3082051b304506092a864886f70d01050d3038301706092a864886f70d01050c"
DSA = "308201bb02010002818100"
add("pem_pkcs1_rsa", _pem("RSA PRIVATE KEY", RSA, 1180), _value, RFC)
add("pem_pkcs1_rsa_encrypted", _pem_legacy_encrypted, _value, "RFC 1421, OpenSSL")
add("pem_ec", _pem_ec, _value, "RFC 5915: Elliptic curve private key structure")
add("pem_pkcs8_rsa", _pem("PRIVATE KEY", PKCS8_RSA, 1184), _value, RFC)
add("pem_pkcs8_ec", _pem("PRIVATE KEY", PKCS8_EC, 102), _value, RFC)
add("pem_pkcs8_ed25519", _pem("PRIVATE KEY", ED25519, 32), _value, "RFC 8410")
add("pem_encrypted", _pem("ENCRYPTED PRIVATE KEY", PBES2, 1270), _value, RFC)
add("pem_dsa", _pem("DSA PRIVATE KEY", DSA, 436), _value, "OpenSSL: dsa")
add(
    "pem_in_yaml",
    _pem("PRIVATE KEY", PKCS8_RSA, 1184),
    _yaml_key,
    RFC,
)
add(
    "pem_one_line",
    lambda rng: _pem("PRIVATE KEY", PKCS8_EC, 102)(rng).replace("\n", "\\n"),
    b.lines('PRIVATE_KEY="{v}"', '  "private_key": "{v}",'),
    RFC,
)
add(
    "oci_api_key",
    _pem("PRIVATE KEY", PKCS8_RSA, 1184),
    b.lines("{v}\nOCI_API_KEY"),
    "OCI: Required keys and OCIDs",
)
add("openssh_ed25519", _openssh, _value, "OpenSSH: PROTOCOL.key")
add("openssh_rsa_encrypted", _openssh_rsa_encrypted, _value, "OpenSSH: PROTOCOL.key")
add("ssh_host_key", _openssh, _ssh_host, "cloud-init: SSH module")
add("ssh2_private", _pem("SSH2 ENCRYPTED PRIVATE KEY", "3f6ff9eb", 700), _value, "SSH2")
add("pgp_private", _pgp, _value, "RFC 9580: OpenPGP, ASCII armor")
add("age", _age("age-secret-key-"), _age_file, "age-keygen(1)")
add("age_post_quantum", _age("age-secret-key-pq-"), _age_file, "age-keygen(1), age 1.3")
add(
    "wireguard",
    _wireguard,
    b.lines("[Interface]\nAddress = 10.8.0.2/24\nPrivateKey = {v}"),
    "wg(8): Configuration file format",
    bare=False,
)
add(
    "wireguard_preshared",
    b.random_b64(32),
    b.lines("[Peer]\nAllowedIPs = 10.8.0.0/24\nPresharedKey = {v}"),
    "wg(8): Configuration file format",
    bare=False,
)
add("jwk_ec", b.random_b64url(32), _jwk, "RFC 7518: JSON Web Algorithms", bare=False)
add("jwk_rsa", b.random_b64url(256), _jwk_rsa, "RFC 7518", bare=False)
add(
    "jwk_symmetric",
    b.random_b64url(32),
    b.lines('{"kty":"oct","alg":"HS256","k":"{v}"}'),
    "RFC 7518: JSON Web Algorithms",
    bare=False,
)
add("putty_ppk", b.random_b64(36), _ppk, "PuTTY: Appendix C, PPK format", bare=False)
add(
    "minisign",
    _minisign,
    b.lines("untrusted comment: minisign encrypted secret key\n{v}"),
    "Minisign: Secret key format",
)
for _count in (12, 24):
    add(
        f"bip39_{_count}",
        _mnemonic(_count),
        b.lines('MNEMONIC="{v}"', "seed phrase: {v}", '  mnemonic: "{v}",'),
        "BIP 39: Mnemonic code",
    )
add(
    "bitcoin_wif", _wif, "BITCOIN_PRIVATE_KEY WIF", "Bitcoin wiki: Wallet import format"
)
add("bip32_xprv", _xprv, "XPRV MASTER_KEY", "BIP 32: Serialization format")
add(
    "ethereum",
    b.pre("0x", 64, b.HEX),
    "PRIVATE_KEY DEPLOYER_PRIVATE_KEY ETH_PRIVATE_KEY",
    "Hardhat: Configuration variables",
    'accounts: ["{v}"]',
    bare=False,
)
add(
    "solana",
    _solana,
    b.lines("SOLANA_PRIVATE_KEY={v}", "PAYER_KEYPAIR='{v}'"),
    "Solana CLI: File system wallet",
    bare=False,
)
add("android_keystore", b.password, _keystore, "Android: Sign your app", bare=False)
add(
    "ansible_vault_password",
    b.password,
    b.lines("ANSIBLE_VAULT_PASSWORD={v}", "vault_password: {v}"),
    "Ansible: Vault",
    bare=False,
)
add(
    "tor_onion_key",
    lambda rng: "ED25519-V3:" + b.b64(rng.randbytes(64)),
    b.lines("ADD_ONION {v} Port=80,8080", "PrivateKey={v}"),
    "Tor control protocol: ADD_ONION",
)
add(
    "encryption_key_hex",
    b.pre("", 64, b.HEX),
    b.lines("ENCRYPTION_KEY={v}", "aes_key: {v}", 'N8N_ENCRYPTION_KEY="{v}"'),
    "Handbooks of self-hosted applications",
    bare=False,
)
add("session_secret", _hex128, "SESSION_SECRET SECRET_KEY_BASE", "Rails", bare=False)
