"""A JAX loop that makes each batch in Python before it computes."""
import sys

import jax
import jax.numpy as jnp
import numpy as np
import stepscope


def next_batch():
    return np.sort(np.random.rand(2000, 256), axis=0).astype("float32"), np.random.rand(2000).astype("float32")


@jax.jit
def train_step(w, x, y):
    return w - 0.01 * jax.grad(lambda w: jnp.mean((jnp.tanh(x @ w).sum(1) - y) ** 2))(w)


w = jnp.ones((256, 64))
jax.profiler.start_server(int(sys.argv[1]))
for i in range(1_000_000):
    with jax.profiler.StepTraceAnnotation("train", step_num=i):
        with stepscope.mark("input"):
            x, y = next_batch()
        w = train_step(w, x, y)
        w.block_until_ready()
