"""Derives the public key of an Ed25519 seed, to prove whether 64 bytes are a key pair.

Not for signing: its running time depends on the seed. (RFC 8032, section 5.1.)
"""

import hashlib

_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P
# The base point in extended coordinates: x, y, z = 1, and x y.
_X = 15112221349535400772501151409588531511454012693041857206046113283949847762202
_Y = 46316835694926478169428394003475163141307993866256225615783033603165251855960
_BASE = (_X, _Y, 1, _X * _Y % _P)
_ZERO = (0, 1, 1, 0)

_Point = tuple[int, int, int, int]


def public_key(seed: bytes) -> bytes:
    """Returns the 32 bytes of the public key that belongs to a seed of 32 bytes."""
    half = bytearray(hashlib.sha512(seed).digest()[:32])
    half[0] &= 248
    half[31] = half[31] & 127 | 64
    scalar = int.from_bytes(half, "little")
    total, power = _ZERO, _BASE
    while scalar:
        if scalar & 1:
            total = _sum(total, power)
        power = _sum(power, power)
        scalar >>= 1
    x, y, z, _ = total
    inverse = pow(z, -1, _P)
    x, y = x * inverse % _P, y * inverse % _P
    return (y | (x & 1) << 255).to_bytes(32, "little")


def _sum(one: _Point, two: _Point) -> _Point:
    a = (one[1] - one[0]) * (two[1] - two[0]) % _P
    b = (one[1] + one[0]) * (two[1] + two[0]) % _P
    c = 2 * one[3] * two[3] * _D % _P
    d = 2 * one[2] * two[2] % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P
