#!/usr/bin/env python3
"""Write the small real event files in fixtures/events: pictures, graphs and hyperparameters, as TensorFlow and PyTorch log them.

    record_events.py [--out DIR]

Needs one interpreter with tensorflow, tensorboard and torch. Each run is a folder; files get neutral names. Models and pictures
are tiny, so that all files together stay below 200 kB.
"""
import argparse
import os
import pathlib
import shutil
import socket
import tempfile

HOST = "trainer"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")


def picture(step, number=0, size=(12, 16)):
    """A square that moves to the right, step by step, on a ground that shows which picture it is."""
    import numpy as np

    image = np.zeros((*size, 3), np.float32)
    image[:, :, number % 3] = 0.35
    left = (step * 3) % (size[1] - 4)
    image[4:8, left : left + 4] = 1.0
    return image


def tensorflow(out):
    import numpy as np
    import tensorflow as tf
    from tensorboard.plugins.hparams import api as hp

    units, rate, kind = hp.HParam("units", hp.Discrete([8, 16])), hp.HParam("rate"), hp.HParam("optimizer")
    with tf.summary.create_file_writer(str(out)).as_default():
        hp.hparams_config(hparams=[units, rate, kind], metrics=[hp.Metric("accuracy", display_name="Accuracy")])
    for number, (count, speed, optimizer) in enumerate([(8, 0.1, "sgd"), (8, 0.01, "adam"), (16, 0.1, "sgd")]):
        with tf.summary.create_file_writer(str(out / f"trial-{number}")).as_default():
            hp.hparams({units: count, rate: speed, kind: optimizer}, trial_id=f"trial-{number}")
            for step in range(3):
                tf.summary.scalar("accuracy", 0.5 + 0.1 * step + 0.02 * number, step=step)

    with tf.summary.create_file_writer(str(out / "pictures")).as_default():
        for step in range(0, 40, 10):
            batch = np.stack([picture(step, number) for number in range(2)])
            tf.summary.image("inputs", batch, step=step, max_outputs=2, description="What the model sees")

    weights = tf.Variable(tf.ones((4, 3)), name="weights")

    @tf.function
    def model(x):
        with tf.name_scope("encoder"):
            with tf.name_scope("dense"):
                hidden = tf.nn.relu(tf.matmul(x, weights, name="product"), name="activation")
        with tf.name_scope("head"):
            return tf.reduce_sum(hidden, name="sum")

    with tf.summary.create_file_writer(str(out / "traced")).as_default():
        tf.summary.trace_on(graph=True)
        model(tf.ones((2, 4)))
        tf.summary.trace_export("step", step=0)
    with tf.summary.create_file_writer(str(out / "graph")).as_default():
        tf.summary.graph(model.get_concrete_function(tf.ones((2, 4))).graph)

    layers = [tf.keras.Input((4,)), tf.keras.layers.Dense(8, activation="relu", name="hidden"), tf.keras.layers.Dense(1, name="out")]
    net = tf.keras.Sequential(layers, name="net")
    net.compile("sgd", "mse")
    log = tf.keras.callbacks.TensorBoard(str(out / "keras"), write_graph=True, profile_batch=0)
    net.fit(np.ones((8, 4)), np.ones((8, 1)), epochs=2, verbose=0, callbacks=[log])


def tensorflow1(out):
    import tensorflow as tf

    tf1 = tf.compat.v1
    with tf.Graph().as_default(), tf1.Session() as session:
        image = tf1.placeholder(tf.float32, (2, 12, 16, 3))
        with tf1.variable_scope("layer"):
            kernel = tf1.get_variable("kernel", (3, 3, 3, 2))
            result = tf.nn.conv2d(image, kernel, 1, "SAME", name="conv")
        tf1.summary.image("image", image, max_outputs=2)
        session.run(tf1.global_variables_initializer())
        merged, writer = tf1.summary.merge_all(), tf1.summary.FileWriter(str(out), session.graph)
        for step in range(2):
            feed = {image: [picture(step, 0), picture(step, 1)]}
            options, data = tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE), tf1.RunMetadata()
            summary, _ = session.run([merged, result], feed, options=options, run_metadata=data)
            writer.add_summary(summary, step)
        writer.add_run_metadata(data, "step1", step)
        writer.close()


def torch(out):
    import torch
    from torch.utils.tensorboard import SummaryWriter

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.features = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU())
            self.head = torch.nn.Linear(8, 1)

        def forward(self, x):
            return self.head(self.features(x))

    with SummaryWriter(str(out / "net")) as writer:
        writer.add_graph(Net(), torch.ones(2, 4))
        for step in range(0, 30, 10):
            writer.add_image("sample", picture(step), step, dataformats="HWC")
            writer.add_scalar("loss", 1.0 / (step + 1), step)
    for number, (rate, frozen) in enumerate([(0.1, True), (0.01, False)]):
        with SummaryWriter(str(out / "sweep")) as writer:
            params = {"lr": rate, "batch": 32, "frozen": frozen, "optimizer": "adam"}
            writer.add_hparams(params, {"hparam/accuracy": 0.8 + number / 10}, run_name=f"trial-{number}")


def neutral(out):
    """File names without the host, the process and the time."""
    for file in sorted(out.rglob("*tfevents*")):
        others = len([one for one in file.parent.iterdir() if one.name.startswith("events.out.tfevents.") and one.name.endswith(HOST)])
        file.rename(file.parent / f"events.out.tfevents.{1767225600 + others}.{HOST}")
        assert socket.gethostname().encode() not in file.parent.joinpath(f"events.out.tfevents.{1767225600 + others}.{HOST}").read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent.parent / "fixtures" / "events")
    out = parser.parse_args().out
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder)
        for program in (tensorflow, tensorflow1, torch):
            program(made / program.__name__)
        neutral(made)
        shutil.rmtree(out, ignore_errors=True)
        shutil.copytree(made, out, ignore=shutil.ignore_patterns("plugins"))
    print(sum(file.stat().st_size for file in out.rglob("*") if file.is_file()), "bytes")


if __name__ == "__main__":
    main()
