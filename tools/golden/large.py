"""ResNet-20 as a whole: weights by the trainer's own rule, so that they need not be stored; sums for most tensors."""
import hashlib

import numpy as np

import images
import philox
import presets
from network import make_shapes

SEED = 7
KINK = 1e-5
MODEL = {"preset": "resnet20", "options": {"numClasses": 10}}
FULL = (
    "act:s2b1_short act:s3b3_add act:pool act:fc grad:conv0.kernel grad:s1b2_conv2.kernel grad:s2b1_conv1.kernel "
    "grad:fc.kernel grad:fc.bias"
).split()


def initial(shape, seed=SEED):
    """Kernels heNormal with the place of the tensor in the model as index; gamma 1; beta and bias 0."""
    shapes, _ = make_shapes(presets.expand(MODEL), shape)
    params = {}
    for index, (name, s) in enumerate(shapes.items()):
        if name.endswith(".kernel"):
            params[name] = philox.he_normal(seed, index, s)
        else:
            params[name] = (np.ones if name.endswith(".gamma") else np.zeros)(s, np.float32)
    return params


def first8(params):
    return {f"first8:{name}": value.reshape(-1)[:8] for name, value in params.items()}


def describe_images(pixels):
    return {"count": len(pixels), "first16": pixels.reshape(-1)[:16].tolist(),
            "sha256": hashlib.sha256(pixels.tobytes()).hexdigest()}


def sums(values):
    v = values.astype(np.float64)
    return np.array([v.sum(), (v * v).sum()])


def case(name, batch, mode, group=0):
    return {
        "name": name,
        "model": MODEL,
        "sampleShape": [16, 16, 3],
        "classes": 10,
        "batch": batch,
        "convention": "PyTorch",
        "statistics": {"mode": mode} | ({"group": group} if group else {}),
        "labelSmoothing": 0.0,
        "seed": SEED,
    }


def make(entry, run):
    """With the first seed that keeps every value away from the kinks of ReLU: there fp32 might take the other side."""
    pixels, labels = images.images(entry["batch"], 16, 16)
    for seed in range(SEED, SEED + 100):
        params = initial(entry["sampleShape"], seed)
        net, values = run(entry, params, images.features(pixels), labels)
        if min(net.kinks) > KINK:
            break
    else:
        raise SystemExit(f"{entry['name']}: every seed has a value near a kink")
    entry["seed"] = seed
    out = first8(params) | {"x": images.features(pixels), "labels": labels, "loss_sum": values["loss_sum"]}
    for name, value in values.items():
        if name in FULL or value.ndim == 1:
            out[name] = value
        else:
            out[f"sums:{name}"] = sums(value)
    return entry | {"images": describe_images(pixels)}, out


def makers(run):
    entries = [case("resnet20", 4, "Local"), case("resnet20_ghost", 5, "Ghost", 2)]
    return {e["name"]: (lambda e=e: make(e, run)) for e in entries}
