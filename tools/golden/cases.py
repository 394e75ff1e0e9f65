"""The cases: a small model each, with the operator in question between a layer in front, so that its data gradient
reaches a stored weight gradient, and the layers that end in classes."""


def conv(filters, kernel, **more):
    kernel = kernel if isinstance(kernel, list) else [kernel]
    return {"type": "conv2d", "filters": filters, "kernelSize": kernel} | more


def dense(units, **more):
    return {"type": "dense", "units": units} | more


def norm(**more):
    return {"type": "batchNorm"} | more


def add(a, b, **more):
    return {"type": "add", "inputs": [a, b]} | more


def pool(kind, kernel, **more):
    return {"type": kind, "kernelSize": [kernel]} | more


RELU = {"activation": "relu"}
FLAT = {"type": "flatten"}
MEAN = {"type": "globalAvgPool"}
CASES = []


def case(name, layers, shape, batch, classes=3, mode="Local", group=0, smoothing=0.0, parts=None, convention="PyTorch"):
    model = layers if isinstance(layers, dict) else {"layers": layers}
    entry = {
        "name": name,
        "model": model,
        "sampleShape": list(shape),
        "classes": classes,
        "batch": batch,
        "convention": convention,
        "statistics": {"mode": mode} | ({"group": group} if mode == "Ghost" else {}),
        "labelSmoothing": smoothing,
    }
    if parts:
        entry["parts"] = parts
    CASES.append(entry)


def around(name, middle, shape=(5, 7, 2), batch=2, channels=4, **more):
    """pre (1 x 1) -> middle -> flatten -> dense. In front of a norm without a bias, whose gradient would be a rounded 0."""
    front = conv(channels, 1, name="pre") | ({"bias": False} if middle[0]["type"] == "batchNorm" else {})
    case(name, [front, *middle, FLAT, dense(3, name="head")], shape, batch, **more)


# dense
case("dense_relu", [FLAT, dense(7, **RELU), dense(5, bias=False, **RELU), dense(3)], (3, 4, 2), 5)
case("dense_batch1", [FLAT, dense(6, **RELU), dense(4)], (2, 3, 1), 1, classes=4)
case("label_smoothing", [FLAT, dense(6, **RELU), dense(5)], (2, 3, 2), 6, classes=5, smoothing=0.1)
case(
    "reshape",
    [FLAT, dense(24, name="wide"), {"type": "reshape", "shape": [2, 3, 4]}, conv(3, 2, name="op"), FLAT, dense(3)],
    (2, 3, 2),
    3,
)

# conv2d
around("conv_same", [conv(3, 3, name="op", padding="same", **RELU)])
around("conv_valid", [conv(3, 3, name="op", padding="valid", **RELU)])
around("conv_pads", [conv(3, 3, name="op", pads=[1], bias=False)])
around("conv_pads2", [conv(3, 3, name="op", pads=[2, 1])])
around("conv_pads4", [conv(3, 3, name="op", pads=[0, 2, 1, 1])])
around("conv_stride2", [conv(5, 3, name="op", padding="same", strides=[2], bias=False)])
around("conv_stride2_even", [conv(5, 3, name="op", padding="same", strides=[2])], shape=(6, 8, 2))
around("conv_stride2_pads", [conv(5, 3, name="op", pads=[1], strides=[2])], shape=(6, 8, 2))
around("conv_stride21", [conv(4, 3, name="op", pads=[1], strides=[2, 1])])
around("conv_stride3", [conv(3, 2, name="op", padding="same", strides=[3])])
around("conv_1x1", [conv(6, 1, name="op", **RELU)])
around("conv_1x1_stride2", [conv(6, 1, name="op", strides=[2], bias=False)])
around("conv_3x5", [conv(3, [3, 5], name="op", padding="same", **RELU)])
around("conv_2x4_same", [conv(3, [2, 4], name="op", padding="same")])
around("conv_dilation2", [conv(3, 3, name="op", padding="same", dilation=[2])], shape=(7, 9, 2))
around("conv_groups2", [conv(6, 3, name="op", padding="same", groups=2, **RELU)])
around("conv_depthwise", [conv(4, 3, name="op", padding="same", groups=4)])
around("conv_depthwise_x2", [conv(8, 3, name="op", padding="same", groups=4, strides=[2], bias=False)])
around("conv_batch1", [conv(3, 3, name="op", padding="same", **RELU)], batch=1)
around("conv_many_channels", [conv(33, 3, name="op", pads=[1], bias=False)], shape=(4, 4, 3), channels=17)
case(
    "conv_stem",
    [conv(8, 7, name="op", strides=[2], pads=[3], bias=False, **RELU), pool("maxPool", 3, strides=[2], pads=[1]), MEAN, dense(3)],
    (17, 19, 3),
    2,
)

# pools
around("maxpool2", [pool("maxPool", 2)], shape=(6, 8, 2))
around("maxpool2_odd", [pool("maxPool", 2)])
around("maxpool3_stride2_pads1", [pool("maxPool", 3, strides=[2], pads=[1])])
around("maxpool3_same", [pool("maxPool", 3, strides=[1], padding="same")])
around("avgpool2", [pool("avgPool", 2)], shape=(6, 8, 2))
around("avgpool3_stride2_pads1", [pool("avgPool", 3, strides=[2], pads=[1])])
around("avgpool3_same", [pool("avgPool", 3, strides=[2], padding="same")], shape=(6, 8, 2))
case("globalavgpool", [conv(5, 3, name="pre", padding="same", **RELU), MEAN, dense(3)], (5, 7, 2), 3)

# batchNorm
around("batchnorm_local", [norm(name="bn")], batch=4)
around("batchnorm_relu", [norm(name="bn", **RELU)], batch=4)
around("batchnorm_options", [norm(name="bn", epsilon=0.01, momentum=0.25)], batch=3)
around("batchnorm_keras", [norm(name="bn")], batch=4, convention="Keras")
around("batchnorm_ghost2_of5", [norm(name="bn")], batch=5, mode="Ghost", group=2)
around("batchnorm_relu_ghost2_of5", [norm(name="bn", **RELU)], batch=5, mode="Ghost", group=2)
around("batchnorm_ghost_beyond_batch", [norm(name="bn")], batch=3, mode="Ghost", group=16)
around("batchnorm_local_parts", [norm(name="bn")], batch=5, parts=[3, 2])
around("batchnorm_sync_parts", [norm(name="bn")], batch=5, mode="Sync", parts=[3, 2])
case("batchnorm_of_rows", [FLAT, dense(6, name="pre", bias=False), norm(name="bn", **RELU), dense(3)], (2, 3, 1), 6)


# residual blocks: the block's input has two readers, so its gradients meet
def block(filters, stride, shortcut):
    front = [conv(4, 3, name="pre", padding="same", bias=False), norm(name="bn0", **RELU)]
    body = [
        conv(filters, 3, name="conv1", pads=[1], strides=[stride], bias=False, inputs=["bn0"]),
        norm(name="bn1", **RELU),
        conv(filters, 3, name="conv2", pads=[1], bias=False),
        norm(name="bn2"),
    ]
    return front + body + shortcut + [add("bn2", shortcut[-1]["name"] if shortcut else "bn0", name="sum", **RELU), MEAN, dense(3)]


PROJECTION = [conv(6, 1, name="project", strides=[2], bias=False, inputs=["bn0"]), norm(name="bn3")]
SHORTCUT = [{"type": "shortcut", "name": "short", "filters": 9, "strides": [2], "inputs": ["bn0"]}]
case("residual_identity", block(4, 1, []), (5, 7, 3), 4)
case("residual_projection", block(6, 2, PROJECTION), (5, 7, 3), 4)
case("residual_shortcut", block(9, 2, SHORTCUT), (5, 7, 3), 4)
case("residual_identity_ghost", block(4, 1, []), (5, 7, 3), 5, mode="Ghost", group=2)
case("residual_projection_ghost", block(6, 2, PROJECTION), (5, 7, 3), 5, mode="Ghost", group=2)
case(
    "fan_out_of_three",
    [
        conv(4, 3, name="a", padding="same", **RELU),
        conv(4, 3, name="b", padding="same", inputs=["a"]),
        conv(4, 1, name="c", inputs=["a"]),
        add("b", "c", name="d"),
        add("d", "a", name="e"),
        {"type": "relu", "name": "f"},
        MEAN,
        dense(3),
    ],
    (5, 6, 2),
    2,
)

# whole presets
case("lenet", {"preset": "lenet", "options": {"numClasses": 10}}, (28, 28, 1), 3, classes=10)
