"""A TensorFlow loop whose input pipeline works on one thread and does not prefetch."""
import sys

import tensorflow as tf


def prepare(i):
    x = tf.random.stateless_uniform((96, 2000), seed=[1, tf.cast(i, tf.int32)])
    for _ in range(6):
        x = tf.sort(x, axis=-1, direction="DESCENDING") * 1.0001
    return tf.reshape(x, (-1,))[: 64 * 64], tf.cast(i % 10, tf.int32)


dense = tf.Variable(tf.random.normal((64 * 64, 10)) * 0.01)
batches = tf.data.Dataset.range(1_000_000).map(prepare).batch(4)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(y, x @ dense))
    dense.assign_sub(0.01 * tape.gradient(loss, dense))
    return loss


tf.profiler.experimental.server.start(int(sys.argv[1]))
for i, (x, y) in enumerate(batches.take(int(sys.argv[2]) if len(sys.argv) > 2 else -1)):
    with tf.profiler.experimental.Trace("train", step_num=i, _r=1):
        loss = train_step(x, y)
    print(f"step {i} loss {loss:.3f}", flush=True)
