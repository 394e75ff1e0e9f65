"""Philox4x32-10 in numpy, and what the trainer makes of it: initial values of parameters.

Written from the paper and from the rules in tests/golden/README.md, not from the C++ code, so that the two check each
other. Everything here is vectorised over elements.
"""
import numpy as np

M32 = np.uint64(0xFFFFFFFF)
CUT_NORMAL_STDDEV = 0.87962566103423978


def philox(counter, key):
    """counter: four arrays of uint32 of one shape; key: two numbers. Returns four arrays of uint32."""
    c0, c1, c2, c3 = (np.asarray(c, np.uint64) for c in counter)
    k0, k1 = key
    for _ in range(10):
        a = c0 * np.uint64(0xD2511F53)
        b = c2 * np.uint64(0xCD9E8D57)
        c0, c1, c2, c3 = (
            (b >> np.uint64(32)) ^ c1 ^ np.uint64(k0),
            b & M32,
            (a >> np.uint64(32)) ^ c3 ^ np.uint64(k1),
            a & M32,
        )
        k0 = (k0 + 0x9E3779B9) & 0xFFFFFFFF
        k1 = (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return tuple(c.astype(np.uint32) for c in (c0, c1, c2, c3))


def mix64(value):
    mask = (1 << 64) - 1
    value = (value + 0x9E3779B97F4A7C15) & mask
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & mask
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & mask
    return value ^ (value >> 31)


def initial_value_key(seed, tensor_index):
    mixed = mix64((mix64((mix64(seed) + 1) & ((1 << 64) - 1)) + tensor_index) & ((1 << 64) - 1))
    return mixed & 0xFFFFFFFF, mixed >> 32


def unit(high, low):
    bits = ((high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)) >> np.uint64(11)
    return (bits.astype(np.float64) + 0.5) * 2.0**-53


def words(key, elements, attempt):
    e = np.asarray(elements, np.uint64)
    zero = np.zeros_like(e)
    return philox((e & M32, e >> np.uint64(32), zero + np.uint64(attempt), zero), key)


def cut_normal(key, count):
    """Unit normals cut at two sigma: elements that fall outside with both Box-Muller values try again."""
    values = np.empty(count)
    open_ = np.arange(count)
    attempt = 0
    while open_.size:
        w = words(key, open_, attempt)
        radius = np.sqrt(-2.0 * np.log(unit(w[0], w[1])))
        angle = 2.0 * np.pi * unit(w[2], w[3])
        first, second = radius * np.cos(angle), radius * np.sin(angle)
        values[open_] = np.where(np.abs(first) <= 2.0, first, second)
        open_ = open_[(np.abs(first) > 2.0) & (np.abs(second) > 2.0)]
        attempt += 1
    return values


def he_normal(seed, tensor_index, shape):
    """fan_in = product of all dimensions but the last, for (in, out) and (kh, kw, in, out)."""
    fan_in = int(np.prod(shape[:-1]))
    sigma = np.sqrt(2.0 / fan_in) / CUT_NORMAL_STDDEV
    values = sigma * cut_normal(initial_value_key(seed, tensor_index), int(np.prod(shape)))
    return values.astype(np.float32).reshape(shape)


def uniform(stream, index, shape, low=-1.0, high=1.0):
    """Test values: multiples of 2^-12 of the width, so that no library can round them differently."""
    count = int(np.prod(shape))
    w = words((stream, index), np.arange(count), 0)
    steps = (w[0] >> np.uint32(20)).astype(np.float64) / 4096.0
    return (low + (high - low) * steps).astype(np.float32).reshape(shape)
