#!/usr/bin/env python3
"""Makes the stored values of tests/golden with PyTorch on the CPU. Run by ./dev golden.

usage: make.py OUT_DIR [CASE...]

Everything but the fp32 loss curves is computed in fp64 and rounded once, so that another machine gets the same values.
"""
import json
import pathlib
import sys

import numpy as np
import torch

import cases
import curve
import large
import philox
import presets
import tensors
from network import Network, make_shapes, to_ours

# Values nearer than this to a kink of ReLU or a tie of a maximum would make fp32 take the other side.
KINK = 1e-4


def groups_of(case):
    statistics, batch = case["statistics"], case["batch"]
    if statistics["mode"] == "Ghost":
        g = statistics["group"]
        return [min(g, batch - i) for i in range(0, batch, g)]
    if statistics["mode"] == "Local" and "parts" in case:
        return case["parts"]
    return [batch]


def initial(case, attempt):
    """Initial values of a small case: spread over both signs, scales around 1, so that every gradient is far from 0."""
    stream = sum(case["name"].encode()) * 1000 + attempt
    shapes, _ = make_shapes(presets.expand(case["model"]), case["sampleShape"])
    params = {}
    for index, (name, shape) in enumerate(shapes.items()):
        if name.endswith(".kernel"):
            limit = np.float32((6.0 / np.prod(shape[:-1])) ** 0.5)
            params[name] = philox.uniform(stream, index, shape) * limit
        else:
            low = 0.5 if name.endswith(".gamma") else -0.5
            params[name] = philox.uniform(stream, index, shape, low, low + 1)
    x = philox.uniform(stream, 1000, (case["batch"], *case["sampleShape"]))
    labels = philox.uniform(stream, 1001, (case["batch"],), 0, case["classes"]).astype(np.int64)
    return params, x, labels


def run(case, params, x, labels, dtype=torch.float64):
    """One step's forward and backward; everything by name."""
    net = Network(case["model"], case["convention"])
    leaves = {n: torch.tensor(v, dtype=dtype).requires_grad_() for n, v in params.items()}
    logits = net.forward(torch.tensor(x, dtype=dtype), leaves, groups_of(case))
    loss = torch.nn.functional.cross_entropy(
        logits, torch.tensor(labels), reduction="sum", label_smoothing=case["labelSmoothing"]
    )
    loss.backward()
    out = {"loss_sum": loss.detach().reshape(1)}
    out |= {f"act:{n}": to_ours(t).detach() for n, t in net.outputs.items() if n != "input"}
    out |= {f"grad:{n}": t.grad for n, t in leaves.items()}
    out |= {f"running:{n}": t for n, t in net.running().items()}
    return net, {n: t.numpy() for n, t in out.items()}


def small(case):
    for attempt in range(200):
        params, x, labels = initial(case, attempt)
        net, out = run(case, params, x, labels)
        if min(net.kinks, default=1.0) > (KINK if "layers" in case["model"] else KINK / 100):
            break
    else:
        raise SystemExit(f"{case['name']}: every start has a value near a kink")
    out |= {f"param:{n}": v for n, v in params.items()}
    return case, out | {"x": x, "labels": labels}


def self_check():
    """Numbers that are known without PyTorch."""
    counts = {
        ("lenet", 10, (28, 28, 1)): 61_706,
        ("resnet20", 10, (32, 32, 3)): 269_722,
        ("resnet50", 1000, (224, 224, 3)): 25_557_032,
        ("resnet50", 5, (224, 224, 3)): 23_518_277,
    }
    for (preset, classes, shape), expected in counts.items():
        layers = presets.expand({"preset": preset, "options": {"numClasses": classes}})
        shapes, macs = make_shapes(layers, shape)
        count = sum(int(np.prod(s)) for s in shapes.values())
        assert count == expected, f"{preset} with {classes} classes has {count} parameters, not {expected}"
        if classes == 1000:
            assert macs == 4_089_184_256, f"{preset}: {macs} multiply-adds forward"
    zero = philox.philox((0, 0, 0, 0), (0, 0))
    assert [int(w) for w in zero] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8], "Philox4x32-10"
    z = torch.tensor([[2.0, 1.0, 0.1]], dtype=torch.float64)
    for smoothing, expected in ((0.0, 0.41703001628), (0.1, 0.51369668294)):
        loss = torch.nn.functional.cross_entropy(z, torch.tensor([0]), label_smoothing=smoothing).item()
        assert abs(loss - expected) < 1e-10, f"cross-entropy with smoothing {smoothing}: {loss}"


def write(out, case, values):
    (out / f"{case['name']}.json").write_text(json.dumps(case, indent=1) + "\n")
    tensors.write(out / f"{case['name']}.safetensors", values)


def main():
    out, only = pathlib.Path(sys.argv[1]), set(sys.argv[2:])
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # the same order of sums on every machine
    self_check()
    makers = {c["name"]: (lambda c=c: small(c)) for c in cases.CASES}
    makers |= large.makers(run) | curve.makers()
    if unknown := only - set(makers):
        raise SystemExit(f"no such case: {', '.join(sorted(unknown))}")
    for name, maker in makers.items():
        if not only or name in only:
            write(out, *maker())
            print(name, flush=True)


if __name__ == "__main__":
    main()
