"""200 steps of ResNet-20: what PyTorch's loss does in fp64, in fp32, and in fp32 from starts that differ by 1e-7.

The spread of the latter is the width of "within fp32 noise".
"""
import concurrent.futures
import multiprocessing

import numpy as np
import torch

import images
import large
from network import Network

STEPS, SAMPLES, BATCH = 200, 512, 32
RATE, MOMENTUM = 0.01, 0.9
PERTURBED = 5
AHEAD = 2  # steps


def losses(params, dtype):
    torch.set_num_threads(1)  # two runs side by side instead: no two of their threads wait for each other
    pixels, labels = images.images(SAMPLES, 32, 32)
    x = torch.tensor(images.features(pixels)).to(dtype)
    y = torch.tensor(labels)
    net = Network(large.MODEL)
    weights = {n: torch.tensor(v).to(dtype).requires_grad_() for n, v in params.items()}
    velocity = {n: torch.zeros_like(w) for n, w in weights.items()}
    means = []
    for step in range(STEPS):
        at = torch.arange(step * BATCH, (step + 1) * BATCH) % SAMPLES
        loss = torch.nn.functional.cross_entropy(net.forward(x[at], weights, [BATCH]), y[at])
        grads = torch.autograd.grad(loss, list(weights.values()))
        with torch.no_grad():
            for (name, weight), grad in zip(weights.items(), grads):
                velocity[name].mul_(MOMENTUM).add_(grad)
                weight.sub_(velocity[name], alpha=RATE)
        means.append(loss.item())
    return np.array(means, np.float32)


def perturbed(params, number):
    """Each weight times 1 +- 1e-7 (at least one unit in the last place)."""
    rng = np.random.default_rng(number)
    out = {}
    for name, value in params.items():
        sign = rng.integers(0, 2, value.shape) * 2 - 1
        out[name] = np.where(value == 0, 0, np.nextafter(value, np.where(sign > 0, np.inf, -np.inf), dtype=np.float32))
    return out


def all_runs(params):
    """The loss curves in fp64, in fp32, and in fp32 from each perturbed start."""
    starts = [(params, torch.float64), (params, torch.float32)]
    starts += [(perturbed(params, number), torch.float32) for number in range(1, PERTURBED + 1)]
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, context) as pool:
        return list(pool.map(losses, *zip(*starts)))


def spread(exact, runs):
    """How far fp32 has strayed from fp64 until two steps after each, in any of the runs. It never shrinks: when a run
    stumbles and recovers is a matter of rounding. Twice that holds for each run by the spread of the others."""
    off = np.maximum.accumulate(np.max([np.abs(run - exact) for run in runs], axis=0))
    return np.concatenate([off[AHEAD:], np.full(AHEAD, off[-1])])


def make():
    params = large.initial([32, 32, 3])
    exact, *runs = all_runs(params)
    envelope = spread(exact, runs)
    pixels, labels = images.images(SAMPLES, 32, 32)
    case = {
        "name": "resnet20_curve",
        "model": large.MODEL,
        "sampleShape": [32, 32, 3],
        "classes": 10,
        "batch": BATCH,
        "convention": "PyTorch",
        "statistics": {"mode": "Local"},
        "labelSmoothing": 0.0,
        "seed": large.SEED,
        "steps": STEPS,
        "optimizer": {"type": "sgd", "learningRate": RATE, "momentum": MOMENTUM, "weightDecay": 0},
        "images": large.describe_images(pixels),
    }
    values = {"loss_fp64": exact, "loss_fp32": runs[0], "envelope": envelope} | large.first8(params)
    values |= {f"loss_fp32_perturbed{n}": r for n, r in enumerate(runs[1:], start=1)}
    return case, values


def makers():
    return {"resnet20_curve": make}
