"""Passwords that people choose count, but not in a test or at a host that exists for examples."""

import base64
import random
import string

import pytest

from gitcp.secrets import examples, pem, words
from gitcp.secrets.scanner import Fingerprints, Scanner

SCANNER = Scanner(Fingerprints(b"k" * 32))
CHOSEN = "Winter2031!"
CHANCE = "k3J9dLq0Xz7Y"
TESTS = {
    "unittest": (
        "class LoginTest(TestCase):\n    def test_login(self):\n        password = 'VALUE'\n"
        "        self.assertTrue(login('me', password))\n"
    ),
    "pytest": (
        "@pytest.fixture\ndef user():\n    return User(password='VALUE')\n\n"
        "def test_user(user):\n    assert user.name == 'me'\n"
    ),
    "JavaScript": (
        "describe('login', () => {\n  it('works', () => {\n    const password = 'VALUE';\n"
        "    expect(login(password)).toBe(true);\n  });\n});\n"
    ),
    "Go": (
        'func TestLogin(t *testing.T) {\n\tpassword := "VALUE"\n'
        '\tif !login(password) {\n\t\tt.Errorf("no")\n\t}\n}\n'
    ),
    "a table of cases": (
        '{"description": "a case",\n "uri": "db://me:VALUE@db.internal/a"},\n' * 4
    ),
    "a manual that is run": ">>> password = 'VALUE'\n>>> login(password)\nTrue\n",
}


def values(text):
    data = text if isinstance(text, bytes) else text.encode()
    return [hit.value.decode() for hit in SCANNER.scan([data])]


@pytest.mark.parametrize("text", TESTS.values(), ids=TESTS)
def test_a_password_that_a_test_makes_up_raises_no_alarm(text):
    assert values(text.replace("VALUE", CHOSEN)) == []


@pytest.mark.parametrize("text", TESTS.values(), ids=TESTS)
def test_a_password_of_chance_is_found_in_a_test(text):
    assert CHANCE in values(text.replace("VALUE", CHANCE))


def test_a_password_that_a_person_chose_is_found_outside_of_tests():
    program = (
        f"def connect():\n    password = '{CHOSEN}'\n    assert len(password) == 11\n"
    )
    assert values(program) == [CHOSEN]
    assert values(f"db://me:{CHOSEN}@db.internal/a") == [CHOSEN]
    assert values(
        TESTS["unittest"].replace("VALUE", "x") + "#\n" * 2_000 + program
    ) == [CHOSEN]


def test_an_example_that_is_announced_raises_no_alarm():
    assert values(f"For example:\n\n    password = '{CHOSEN}'\n") == []
    assert values(f"For example:\n\n    password = '{CHANCE}'\n") == [CHANCE]
    assert values(f"For samples:\n\n    password = '{CHOSEN}'\n") == [CHOSEN]


def test_a_test_in_a_conversation_is_a_test():
    code = (
        TESTS["pytest"]
        .replace("VALUE", CHOSEN)
        .replace("'", '\\"')
        .replace("\n", "\\n")
    )
    assert values('{"content": "' + code + '"}') == []
    assert values('{"content": "password = \\"' + CHOSEN + '\\""}') == [CHOSEN]


def test_what_is_decoded_in_a_test_is_judged_by_the_text_around_it():
    url = "db://me:Pass%2Dw0rd%21@db.internal/"
    far = "#" * 900
    code = (
        f"def test_a():\n    {far}\n    go('{url}')\n    {far}\n    assert_called()\n"
    )
    assert values(code) == []
    assert values(f"go('{url}')\n") != []


def test_a_token_and_a_key_are_found_in_a_test():
    letters = random.Random(1).choices(string.ascii_letters + string.digits, k=36)
    token = f"ghp_{''.join(letters)}"
    assert values(TESTS["unittest"].replace("VALUE", token)) == [token]
    secret = base64.b64encode(random.Random(2).randbytes(24)).decode()
    code = TESTS["pytest"].replace("password", "client_secret").replace("VALUE", secret)
    assert values(code) == [secret]


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1:5432", "db.example.com", "h.test", "[::1]"]
)
def test_a_host_for_examples_has_passwords_for_examples(host):
    assert values(f"db://me:Sekr3tPass1@{host}/a") == []
    assert values(f"db://me:{CHANCE}@{host}/a") == [CHANCE]


@pytest.mark.parametrize(
    "host", ["localhost.internal", "example.company.com", "testing.io", "db.internal"]
)
def test_another_host_does_not(host):
    assert values(f"db://me:Sekr3tPass1@{host}/a") == ["Sekr3tPass1"]


@pytest.mark.parametrize(
    "value",
    [
        *("Winter2031!", "correct7horse8battery", "Ab123456cdef", "Gh567890ijkl"),
        *("Rc567812\u00e0\u00e8\u00ec\u00f2\u00f9", "P@ssw0rd123", "s3cr3tP4ss!"),
        *("pass!@#$%^&*()_+", "pass%21%40word", "qwerty123!", "Tr0ub4dorAndThr33"),
    ],
)
def test_a_person_chose_a_password_of_words_or_of_letters_in_order(value):
    assert examples.chosen(value.encode())


def test_few_passwords_made_by_chance_look_chosen():
    rng = random.Random(3)
    for alphabet in (string.ascii_letters + string.digits, "0123456789abcdef"):
        made = ["".join(rng.choices(alphabet, k=12)).encode() for _ in range(1_000)]
        assert sum(map(examples.chosen, made)) < 40


def test_the_time_of_a_signed_address_is_no_key():
    signature = base64.b64encode(random.Random(4).randbytes(32)).decode()
    signature = signature.replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")
    times = "st=2015-04-29T22%3A18%3A26Z&se=2015-04-30T02%3A23%3A26Z"
    assert values(f"https://a.blob.internal/c?{times}&sr=b") == []
    assert signature in values(f"https://a.blob.internal/c?{times}&sig={signature}")


def test_a_name_and_a_password_are_read_in_another_character_set():
    def header(text):
        return (
            f"Authorization: Basic {base64.b64encode(text.encode('latin-1')).decode()}"
        )

    assert values(header("user:pass\u00e9")) == []
    assert values(header("user:k3J9dLq0Xz7\u00e9")) != []
    random_bytes = "\u00d0\u00f1\u00e2\u00ffx:\u00fe\u00c8\u00d9\u00eb"
    assert words.latin(base64.b64encode(random_bytes.encode("latin-1"))) is None


# --- certificates ----------------------------------------------------------------------


def block(label, head, size, seed=5):
    raw = bytes.fromhex(head) + random.Random(seed).randbytes(size)
    return f"-----BEGIN {label}-----\n{base64.encodebytes(raw).decode()}-----END {label}-----\n"


CERTIFICATE = block("CERTIFICATE", "3082052f30820317a003020102021011", 800)


def test_a_certificate_is_left_out_and_the_lines_around_it_keep_their_numbers():
    text = f"a\n{CERTIFICATE}token = '{CHANCE}v2mPqR'\n".encode()
    blank = pem.without_certificates(text)
    assert len(blank) == len(text)
    assert blank.count(b"\n") == text.count(b"\n")
    assert len(blank.split()) == 8
    (hit,) = SCANNER.scan([text])
    assert hit.line == text.count(b"\n")


def test_a_private_key_that_says_it_is_a_certificate_is_found():
    private = block("CERTIFICATE", "308204a40201000282010100", 800).replace("\n", "")
    assert pem.without_certificates(private.encode()) == private.encode()
    assert values(private) != []


def test_a_certificate_without_an_end_is_scanned():
    text = CERTIFICATE.partition("-----END")[0].encode()
    assert pem.without_certificates(text) == text
