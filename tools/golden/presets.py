"""The presets as lists of layers, in the words of a manifest's spec.model.layers. Written from the papers."""


def conv(name, filters, kernel, stride=1, bias=False, **more):
    layer = {"type": "conv2d", "name": name, "filters": filters, "kernelSize": [kernel], "bias": bias}
    if stride != 1:
        layer["strides"] = [stride]
    if "padding" not in more and "pads" not in more and kernel > 1:
        layer["pads"] = [kernel // 2]
    return layer | more


def norm(name, relu=False):
    return {"type": "batchNorm", "name": name} | ({"activation": "relu"} if relu else {})


def add(name, *inputs):
    return {"type": "add", "name": name, "activation": "relu", "inputs": list(inputs)}


def lenet(classes):
    """LeNet-5 with ReLU and maxima, on 28 x 28: the first convolution pads by 2."""
    return [
        conv("conv1", 6, 5, bias=True, pads=[2], activation="relu"),
        {"type": "maxPool", "name": "pool1", "kernelSize": [2]},
        conv("conv2", 16, 5, bias=True, padding="valid", activation="relu"),
        {"type": "maxPool", "name": "pool2", "kernelSize": [2]},
        {"type": "flatten", "name": "flat"},
        {"type": "dense", "name": "fc1", "units": 120, "activation": "relu"},
        {"type": "dense", "name": "fc2", "units": 84, "activation": "relu"},
        {"type": "dense", "name": "fc3", "units": classes},
    ]


def resnet20(classes):
    """ResNet-20 for CIFAR-10 with parameter-free shortcuts (He et al., option A)."""
    layers = [conv("conv0", 16, 3), norm("bn0", relu=True)]
    before = "bn0"
    for stage, filters in enumerate((16, 32, 64), start=1):
        for block in (1, 2, 3):
            name = f"s{stage}b{block}"
            stride = 2 if stage > 1 and block == 1 else 1
            layers += [
                conv(f"{name}_conv1", filters, 3, stride, inputs=[before]),
                norm(f"{name}_bn1", relu=True),
                conv(f"{name}_conv2", filters, 3),
                norm(f"{name}_bn2"),
            ]
            shortcut = before
            if stride == 2:
                shortcut = f"{name}_short"
                layers.append(
                    {"type": "shortcut", "name": shortcut, "filters": filters, "strides": [2], "inputs": [before]}
                )
            layers.append(add(f"{name}_add", f"{name}_bn2", shortcut))
            before = f"{name}_add"
    return layers + [
        {"type": "globalAvgPool", "name": "pool"},
        {"type": "dense", "name": "fc", "units": classes},
    ]


def resnet50(classes):
    """ResNet-50 v1.5 (the stride sits in the 3 x 3 convolution); for its parameter count alone."""
    layers = [
        conv("conv0", 64, 7, 2),
        norm("bn0", relu=True),
        {"type": "maxPool", "name": "pool0", "kernelSize": [3], "strides": [2], "pads": [1]},
    ]
    before = "pool0"
    for stage, (blocks, width) in enumerate(((3, 64), (4, 128), (6, 256), (3, 512)), start=1):
        for block in range(1, blocks + 1):
            name = f"s{stage}b{block}"
            stride = 2 if stage > 1 and block == 1 else 1
            layers += [
                conv(f"{name}_conv1", width, 1, inputs=[before]),
                norm(f"{name}_bn1", relu=True),
                conv(f"{name}_conv2", width, 3, stride),
                norm(f"{name}_bn2", relu=True),
                conv(f"{name}_conv3", 4 * width, 1),
                norm(f"{name}_bn3"),
            ]
            shortcut = before
            if block == 1:
                shortcut = f"{name}_bn4"
                layers += [conv(f"{name}_conv4", 4 * width, 1, stride, inputs=[before]), norm(shortcut)]
            layers.append(add(f"{name}_add", f"{name}_bn3", shortcut))
            before = f"{name}_add"
    return layers + [
        {"type": "globalAvgPool", "name": "pool"},
        {"type": "dense", "name": "fc", "units": classes},
    ]


PRESETS = {"lenet": lenet, "resnet20": resnet20, "resnet50": resnet50}


def expand(model):
    """Layers with names and inputs filled in as the trainer does: <type>_<1-based count>, the one before."""
    layers = model["layers"] if "layers" in model else PRESETS[model["preset"]](model["options"]["numClasses"])
    count, before, out = {}, "input", []
    for layer in layers:
        kind = layer["type"]
        count[kind] = count.get(kind, 0) + 1
        name = layer.get("name", f"{kind}_{count[kind]}")
        out.append(layer | {"name": name, "inputs": layer.get("inputs", [before])})
        before = name
    return out
