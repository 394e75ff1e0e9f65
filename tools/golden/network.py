"""A model in the words of a manifest, run by PyTorch on the CPU.

Images are (N, C, H, W) in here and (N, H, W, C) outside; kernels are (h, w, in, out) and (in, out) outside.
"""
import math

import torch
import torch.nn.functional as F

import presets

EPSILON = {"PyTorch": 1e-5, "Keras": 1e-3}
NEW_SHARE = {"PyTorch": 0.1, "Keras": 0.01}


def pair(values):
    return (values[0], values[-1])


def same_pads(size, kernel, stride, dilation):
    total = max((math.ceil(size / stride) - 1) * stride + (kernel - 1) * dilation + 1 - size, 0)
    return total // 2, total - total // 2


def pads_of(layer, height, width):
    """(top, bottom, left, right)."""
    kernel = pair(layer["kernelSize"])
    stride = strides_of(layer)
    dilation = pair(layer.get("dilation", [1]))
    if layer.get("padding") == "same":
        return same_pads(height, kernel[0], stride[0], dilation[0]) + same_pads(
            width, kernel[1], stride[1], dilation[1]
        )
    pads = layer.get("pads", [0])
    if len(pads) == 4:
        top, left, bottom, right = pads
        return top, bottom, left, right
    return pads[0], pads[0], pads[-1], pads[-1]


def strides_of(layer):
    pool = layer["type"] in ("maxPool", "avgPool")
    return pair(layer.get("strides", layer["kernelSize"] if pool else [1]))


def padded(x, layer, value):
    top, bottom, left, right = pads_of(layer, x.shape[2], x.shape[3])
    return F.pad(x, (left, right, top, bottom), value=value)


def from_ours(t):
    return t.permute(0, 3, 1, 2) if t.dim() == 4 else t


def to_ours(t):
    return t.permute(0, 2, 3, 1) if t.dim() == 4 else t


def make_shapes(layers, sample_shape):
    """Parameters {name: shape} in the order of the model, and the number of multiply-adds of one sample."""
    shapes, of, macs = {}, {"input": tuple(sample_shape)}, 0
    for layer in layers:
        kind, name = layer["type"], layer["name"]
        x = of[layer["inputs"][0]]
        y = x
        if kind in ("conv2d", "maxPool", "avgPool"):
            kernel, stride, dilation = pair(layer["kernelSize"]), strides_of(layer), pair(layer.get("dilation", [1]))
            top, bottom, left, right = pads_of(layer, x[0], x[1])
            out = [
                (x[0] + top + bottom - (kernel[0] - 1) * dilation[0] - 1) // stride[0] + 1,
                (x[1] + left + right - (kernel[1] - 1) * dilation[1] - 1) // stride[1] + 1,
            ]
            y = (*out, layer.get("filters", x[2]))
            if kind == "conv2d":
                shapes[f"{name}.kernel"] = (*kernel, x[2] // layer.get("groups", 1), layer["filters"])
                macs += out[0] * out[1] * math.prod(shapes[f"{name}.kernel"])
        elif kind == "dense":
            y = (layer["units"],)
            shapes[f"{name}.kernel"] = (x[0], layer["units"])
            macs += x[0] * layer["units"]
        elif kind == "batchNorm":
            shapes[f"{name}.gamma"] = shapes[f"{name}.beta"] = (x[-1],)
        elif kind == "flatten":
            y = (math.prod(x),)
        elif kind == "globalAvgPool":
            y = (x[2],)
        elif kind == "reshape":
            y = tuple(layer["shape"])
        elif kind == "shortcut":
            s = pair(layer.get("strides", [1]))
            y = (-(-x[0] // s[0]), -(-x[1] // s[1]), layer["filters"])
        if kind in ("conv2d", "dense") and layer.get("bias", True):
            shapes[f"{name}.bias"] = (y[-1],)
        of[name] = y
    return shapes, macs


def batch_norm(x, gamma, beta, epsilon, groups, unbiased):
    """Normalises each group of samples by itself; returns y and the count-weighted mean and variance."""
    ys, means, variances = [], 0, 0
    for part in x.split(groups):
        running_mean = torch.zeros_like(gamma)
        running_variance = torch.zeros_like(gamma)
        ys.append(F.batch_norm(part, running_mean, running_variance, gamma, beta, True, 1.0, epsilon))
        n = part.numel() // part.shape[1]
        variance = running_variance if unbiased else running_variance * (n - 1) / n
        means = means + part.shape[0] * running_mean
        variances = variances + part.shape[0] * variance
    return torch.cat(ys), means / x.shape[0], variances / x.shape[0]


class Network:
    def __init__(self, model, convention="PyTorch"):
        self.layers = presets.expand(model)
        self.convention = convention

    def forward(self, x, params, groups):
        """x (N, H, W, C); groups: sizes of the sets of samples that share statistics. Returns logits; the outputs of
        all layers stay in self.outputs, the statistics that running ones move towards in self.statistics."""
        self.outputs = {"input": from_ours(x)}
        self.statistics = {}
        self.kinks = []  # smallest distance of a value from a point where its layer has no derivative
        for layer in self.layers:
            inputs = [self.outputs[name] for name in layer["inputs"]]
            y = self.apply(layer, inputs, params, groups)
            if layer.get("activation") == "relu":
                y = self.relu(y)
            self.outputs[layer["name"]] = y
        return y

    def relu(self, x):
        self.kinks.append(x.detach().abs().min().item())
        return F.relu(x)

    def apply(self, layer, inputs, params, groups):
        kind, name, x = layer["type"], layer["name"], inputs[0]
        if kind == "dense":
            return F.linear(x, params[f"{name}.kernel"].t(), params.get(f"{name}.bias"))
        if kind == "conv2d":
            kernel = params[f"{name}.kernel"].permute(3, 2, 0, 1)
            return F.conv2d(
                padded(x, layer, 0.0),
                kernel,
                params.get(f"{name}.bias"),
                stride=strides_of(layer),
                dilation=pair(layer.get("dilation", [1])),
                groups=layer.get("groups", 1),
            )
        if kind == "maxPool":
            return self.max_pool(layer, x)
        if kind == "avgPool":
            real = padded(torch.ones_like(x[:1, :1]), layer, 0.0)
            window, stride = pair(layer["kernelSize"]), strides_of(layer)
            return F.avg_pool2d(padded(x, layer, 0.0), window, stride) / F.avg_pool2d(real, window, stride)
        if kind == "globalAvgPool":
            return x.mean((2, 3))
        if kind == "batchNorm":
            y, mean, variance = batch_norm(
                x,
                params[f"{name}.gamma"],
                params[f"{name}.beta"],
                layer.get("epsilon", EPSILON[self.convention]),
                groups,
                self.convention == "PyTorch",
            )
            new = layer.get("momentum", NEW_SHARE[self.convention])
            self.statistics[name] = (new, mean.detach(), variance.detach())
            return y
        if kind == "relu":
            return self.relu(x)
        if kind == "add":
            return inputs[0] + inputs[1]
        if kind == "flatten":
            return to_ours(x).reshape(x.shape[0], -1)
        if kind == "reshape":
            return from_ours(to_ours(x).reshape(x.shape[0], *layer["shape"]))
        if kind == "shortcut":
            sh, sw = pair(layer.get("strides", [1]))
            extra = layer["filters"] - x.shape[1]
            return F.pad(x[:, :, ::sh, ::sw], (0, 0, 0, 0, extra // 2, extra - extra // 2))
        raise ValueError(f"layer type {kind} is not known here")

    def max_pool(self, layer, x):
        window, stride = pair(layer["kernelSize"]), strides_of(layer)
        p = padded(x, layer, -math.inf)
        if window[0] * window[1] > 1:
            points = F.unfold(p.detach().clamp(min=-1e30), window, stride=stride)
            points = points.reshape(x.shape[0], x.shape[1], window[0] * window[1], -1)
            top = points.topk(2, dim=2).values
            # Zeros that a ReLU left may tie: their gradient ends at that ReLU.
            self.kinks.append((top[:, :, 0] - top[:, :, 1])[top[:, :, 0] != 0].min().item())
        return F.max_pool2d(p, window, stride)

    def running(self):
        """Running statistics after one update from mean 0 and variance 1."""
        out = {}
        for name, (new, mean, variance) in self.statistics.items():
            out[f"{name}.running_mean"] = new * mean
            out[f"{name}.running_var"] = (1 - new) + new * variance
        return out
