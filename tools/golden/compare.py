#!/usr/bin/env python3
"""Compares stored values with those just made: compare.py STORED MADE. Ends with "N passed, N failed".

A case passes if its description is the same and each tensor is the same to the bit, or to 1e-6 of each value and 1e-7
of the tensor's largest (another processor may round fp64 sums differently before they are rounded to fp32). Loss curves
in fp32 depend on the machine by nature: they must stay within four widths of the stored envelope.
"""
import json
import pathlib
import sys

import numpy as np

import tensors

RELATIVE, OF_LARGEST = 1e-6, 1e-7
ENVELOPES = 4.0


def allowed(name, stored):
    if name == "envelope":
        return np.maximum(stored["envelope"] * ENVELOPES, 1e-5)
    if name.startswith("loss_fp32"):
        return np.maximum(stored["envelope"] * ENVELOPES, 1e-6)
    value = np.abs(stored[name])
    return RELATIVE * value + OF_LARGEST * value.max(initial=0)


def differences(name, stored_folder, made_folder):
    """Texts; empty if the case is the same. The second value: whether every bit is."""
    a_json, b_json = (json.loads((f / f"{name}.json").read_text()) for f in (stored_folder, made_folder))
    if a_json != b_json:
        return [f"the description differs: {a_json} before, {b_json} now"], False
    a, b = (tensors.read(f / f"{name}.safetensors") for f in (stored_folder, made_folder))
    if a.keys() != b.keys():
        return [f"other tensors: {sorted(a.keys() ^ b.keys())}"], False
    texts, same = [], True
    for key in sorted(a):
        if a[key].shape != b[key].shape:
            texts.append(f"{key}: shape {a[key].shape} before, {b[key].shape} now")
            continue
        same = same and a[key].tobytes() == b[key].tobytes()
        off = np.abs(a[key].astype(np.float64) - b[key].astype(np.float64))
        beyond = off - allowed(key, a)
        if beyond.size and beyond.max() > 0:
            at = np.unravel_index(beyond.argmax(), beyond.shape)
            where = tuple(int(i) for i in at)
            texts.append(f"{key}{list(where)}: {a[key][at]:.9g} before, {b[key][at]:.9g} now")
    return texts, same


def main():
    stored, made = (pathlib.Path(p) for p in sys.argv[1:3])
    names = lambda folder: {p.stem for p in folder.glob("*.safetensors")}
    passed, failed, to_the_bit = 0, 0, 0
    for name in sorted(names(stored) | names(made)):
        if name not in names(stored) or name not in names(made):
            texts, same = ["only " + ("stored" if name in names(stored) else "made now")], False
        else:
            texts, same = differences(name, stored, made)
        if texts:
            failed += 1
            print(f"FAIL {name}: " + "; ".join(texts[:4]) + (f"; and {len(texts) - 4} more" if len(texts) > 4 else ""))
        else:
            passed, to_the_bit = passed + 1, to_the_bit + same
    print(f"{to_the_bit} of {passed} the same to the bit")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
