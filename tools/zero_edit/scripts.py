"""Training scripts that know nothing of stepscope, each with a stopwatch inside: name, source, expected findings, expected line.

A script calls ``tick()`` once per step, where a person would look at the clock. ``None`` as the line: no Python is to blame.
"""

TICK = '''
import atexit, json, os, time
_ticks = []
def tick(): _ticks.append(time.time())
if os.environ.get("RANK", "0") == "0":
    atexit.register(lambda: json.dump(_ticks, open(os.environ["STOPWATCH"], "w")))
'''
#: A library of the script's own: what it takes is its caller's.
LIBRARY = '''
import time
def burn(ms):
    until, total = time.perf_counter() + ms / 1e3, 0.0
    while time.perf_counter() < until: total += 1.5
    return total
'''
BURN = '''
from burning import burn
'''
TORCH = TICK + BURN + '''
import torch
torch.set_num_threads(1)
def model(n=64): return torch.nn.Sequential(torch.nn.Linear(n, n), torch.nn.ReLU(), torch.nn.Linear(n, 1))
'''
TF = TICK + BURN + '''
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf, numpy as np
w = tf.Variable(tf.random.normal((256, 256)))
@tf.function
def train_step(x):
    with tf.GradientTape() as tape: loss = tf.reduce_sum(tf.tanh(x @ w))
    w.assign_sub(1e-3 * tape.gradient(loss, w))
    return loss
'''
JAX = TICK + BURN + '''
import jax, jax.numpy as jnp, numpy as np
@jax.jit
def train_step(w, x): return w - 1e-3 * jax.grad(lambda w: jnp.sum(jnp.tanh(x @ w)))(w)
w = jnp.ones((256, 256))
'''
KERAS = TICK + BURN + '''
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras, numpy as np
class Watch(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None): tick()
def net():
    m = keras.Sequential([keras.layers.Dense(64), keras.layers.Dense(1)]); m.compile("sgd", "mse"); return m
'''
ANY_INPUT = ("input-bound", "host-python")

SCRIPTS = {
    "torch_slow_dataset": (TORCH + '''
class Data(torch.utils.data.Dataset):
    def __len__(self): return 640
    def __getitem__(self, i):
        burn(2); return torch.zeros(64), torch.zeros(1)
m = model(); o = torch.optim.SGD(m.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(Data(), batch_size=8):
    tick(); o.zero_grad(); ((m(x) - y) ** 2).mean().backward(); o.step()
''', ("input-bound",), "__getitem__"),
    "torch_generator": (TORCH + '''
def batches():
    for _ in range(100):
        burn(15); yield torch.zeros(8, 64), torch.zeros(8, 1)
m = model(); o = torch.optim.SGD(m.parameters(), lr=0.1)
for x, y in batches():
    tick(); o.zero_grad(); ((m(x) - y) ** 2).mean().backward(); o.step()
''', ANY_INPUT, "batches"),
    "torch_no_iterator": (TORCH + '''
def get_batch():
    burn(15); return torch.zeros(8, 64), torch.zeros(8, 1)
m = model(); o = torch.optim.Adam(m.parameters())
for step in range(100):
    tick(); x, y = get_batch(); o.zero_grad(); ((m(x) - y) ** 2).mean().backward(); o.step()
''', ANY_INPUT, "get_batch"),
    "torch_metrics": (TORCH + '''
def log_metrics(loss): return burn(20) + float(loss)
m = model(); o = torch.optim.SGD(m.parameters(), lr=0.1)
x, y = torch.zeros(8, 64), torch.zeros(8, 1)
for step in range(100):
    tick(); o.zero_grad(); loss = ((m(x) - y) ** 2).mean(); loss.backward(); o.step(); log_metrics(loss)
''', ("host-python",), "log_metrics"),
    "torch_gan": (TORCH + '''
d, g = model(), torch.nn.Linear(64, 64)
od, og = torch.optim.Adam(d.parameters()), torch.optim.Adam(g.parameters())
def sample(): burn(12); return torch.randn(8, 64)
for step in range(100):
    tick(); z = sample()
    od.zero_grad(); d(g(z).detach()).mean().backward(); od.step()
    og.zero_grad(); (-d(g(z)).mean()).backward(); og.step()
''', ANY_INPUT, "sample"),
    "torch_accumulation": (TORCH + '''
m = model(); o = torch.optim.SGD(m.parameters(), lr=0.1)
def load(): burn(5); return torch.zeros(8, 64), torch.zeros(8, 1)
for step in range(100):
    tick(); o.zero_grad()
    for _ in range(4):
        x, y = load(); ((m(x) - y) ** 2).mean().backward()
    o.step()
''', ANY_INPUT, "load"),
    "torch_validation": (TORCH + '''
from torch.utils.data import DataLoader, TensorDataset
def data(n): return TensorDataset(torch.zeros(n, 64), torch.zeros(n, 1))
def report(loss): burn(10)
m = model(); o = torch.optim.SGD(m.parameters(), lr=0.1)
for epoch in range(5):
    for x, y in DataLoader(data(160), batch_size=8):
        tick(); o.zero_grad(); loss = ((m(x) - y) ** 2).mean(); loss.backward(); o.step(); report(loss)
    with torch.no_grad():
        for x, y in DataLoader(data(80), batch_size=8): m(x)
''', ("host-python",), "report"),
    "torch_compute": (TORCH + '''
a = torch.randn(900, 900, requires_grad=True); o = torch.optim.SGD([a], lr=1e-6)
for step in range(60):
    tick(); o.zero_grad(); (a @ a @ a).sum().backward(); o.step()
''', ("compute-bound", "op-dominates"), None),
    "torch_manual_sgd": (TORCH + '''
m = model(); x, y = torch.zeros(8, 64), torch.zeros(8, 1)
def augment(x): burn(15); return x
for step in range(100):
    tick(); loss = ((m(augment(x)) - y) ** 2).mean(); loss.backward()
    with torch.no_grad():
        for p in m.parameters(): p -= 0.1 * p.grad; p.grad = None
''', ANY_INPUT, "augment"),
    "torch_checkpoint": (TORCH + '''
m = torch.nn.Linear(1000, 1000); o = torch.optim.SGD(m.parameters(), lr=0.1); x = torch.zeros(4, 1000)
def save_checkpoint(): torch.save(m.state_dict(), os.environ["STOPWATCH"] + ".pt")
for step in range(100):
    tick(); o.zero_grad(); m(x).sum().backward(); o.step(); save_checkpoint()
''', ("output-bound", "host-python"), "save_checkpoint"),
    "torch_ten_steps": (TORCH + '''
def get_batch(): burn(40); return torch.zeros(8, 64)
m = model(); o = torch.optim.SGD(m.parameters(), lr=0.1)
for step in range(10):
    tick(); o.zero_grad(); m(get_batch()).sum().backward(); o.step()
''', ANY_INPUT, "get_batch"),
    "torch_long_steps": (TORCH + '''
def prepare(): time.sleep(20); return torch.zeros(8, 64)
m = model(); o = torch.optim.SGD(m.parameters(), lr=0.1)
for step in range(7):
    tick(); o.zero_grad(); m(prepare()).sum().backward(); o.step()
''', ANY_INPUT, "prepare"),
    "torch_raises": (TORCH + '''
def get_batch(): burn(15); return torch.zeros(8, 64)
m = model(); o = torch.optim.SGD(m.parameters(), lr=0.1)
for step in range(300):
    tick(); o.zero_grad(); m(get_batch()).sum().backward(); o.step()
    if step == 60: raise RuntimeError("out of memory")
''', ANY_INPUT, "get_batch"),
    "torch_killed": (TORCH + '''
def get_batch(): burn(15); return torch.zeros(8, 64)
m = model(); o = torch.optim.SGD(m.parameters(), lr=0.1)
for step in range(400):
    tick(); o.zero_grad(); m(get_batch()).sum().backward(); o.step()
    if step == 60: json.dump(_ticks, open(os.environ["STOPWATCH"], "w")); os.kill(os.getpid(), 9)
''', ANY_INPUT, "get_batch"),
    "hf_trainer": (TORCH + '''
from transformers import Trainer, TrainingArguments, TrainerCallback
class Data(torch.utils.data.Dataset):
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i): burn(2); return {"x": torch.zeros(64), "labels": torch.zeros(1)}
class M(torch.nn.Module):
    def __init__(self): super().__init__(); self.m = model()
    def forward(self, x, labels): p = self.m(x); return {"loss": ((p - labels) ** 2).mean(), "logits": p}
class Watch(TrainerCallback):
    def on_step_begin(self, *a, **k): tick()
Trainer(M(), TrainingArguments("/tmp/zero-edit-hf", per_device_train_batch_size=4, gradient_accumulation_steps=2, max_steps=60,
    eval_strategy="steps", eval_steps=20, report_to=[], disable_tqdm=True, save_strategy="no", use_cpu=True),
    train_dataset=Data(600), eval_dataset=Data(40), callbacks=[Watch()]).train()
''', ("input-bound",), "__getitem__"),
    "lightning": (TORCH + '''
import lightning as L, logging
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
class Data(torch.utils.data.Dataset):
    def __init__(self, n): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i): burn(2); return torch.zeros(64), torch.zeros(1)
class M(L.LightningModule):
    def __init__(self): super().__init__(); self.m = model()
    def training_step(self, b, i): tick(); return ((self.m(b[0]) - b[1]) ** 2).mean()
    def validation_step(self, b, i): self.m(b[0])
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), lr=0.1)
load = lambda n: torch.utils.data.DataLoader(Data(n), batch_size=8)
L.Trainer(max_epochs=3, accelerator="cpu", logger=False, enable_progress_bar=False, enable_checkpointing=False,
    enable_model_summary=False).fit(M(), load(240), load(40))
''', ("input-bound",), "__getitem__"),
    "accelerate": (TORCH + '''
from accelerate import Accelerator
class Data(torch.utils.data.Dataset):
    def __len__(self): return 640
    def __getitem__(self, i): burn(2); return torch.zeros(64), torch.zeros(1)
a = Accelerator(cpu=True); m = model(); o = torch.optim.SGD(m.parameters(), lr=0.1)
m, o, d = a.prepare(m, o, torch.utils.data.DataLoader(Data(), batch_size=8))
for x, y in d:
    tick(); o.zero_grad(); a.backward(((m(x) - y) ** 2).mean()); o.step()
''', ("input-bound",), "__getitem__"),
    "torch_ddp": (TORCH + '''
import sys, subprocess
if "RANK" not in os.environ:
    env = lambda r: dict(os.environ, RANK=str(r), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT="29611", LOCAL_RANK=str(r))
    atexit._clear(); sys.exit(max(p.wait() for p in [subprocess.Popen([sys.executable, __file__], env=env(r)) for r in (0, 1)]))
torch.distributed.init_process_group("gloo")
def get_batch(): burn(20); return torch.zeros(8, 64)
m = torch.nn.parallel.DistributedDataParallel(model()); o = torch.optim.SGD(m.parameters(), lr=0.1)
for step in range(100):
    tick(); o.zero_grad(); m(get_batch()).sum().backward(); o.step()
''', ANY_INPUT + ("communication-bound", "straggler"), "get_batch"),
    "torchrun": (TORCH + '''
torch.distributed.init_process_group("gloo")
def get_batch(): burn(20); return torch.zeros(8, 64)
m = torch.nn.parallel.DistributedDataParallel(model()); o = torch.optim.SGD(m.parameters(), lr=0.1)
for step in range(100):
    tick(); o.zero_grad(); m(get_batch()).sum().backward(); o.step()
torch.distributed.destroy_process_group()
''', ANY_INPUT + ("communication-bound", "straggler"), "get_batch"),
    "accelerate_launch": (TORCH + '''
from accelerate import Accelerator
class Data(torch.utils.data.Dataset):
    def __len__(self): return 1280
    def __getitem__(self, i): burn(2); return torch.zeros(64), torch.zeros(1)
a = Accelerator(cpu=True); m = model(); o = torch.optim.SGD(m.parameters(), lr=0.1)
m, o, d = a.prepare(m, o, torch.utils.data.DataLoader(Data(), batch_size=8))
for x, y in d:
    tick(); o.zero_grad(); a.backward(((m(x) - y) ** 2).mean()); o.step()
''', ("input-bound", "straggler"), "__getitem__"),
    "mpirun": (TORCH.replace('"RANK"', '"OMPI_COMM_WORLD_RANK"') + '''
def get_batch(): burn(20); return torch.zeros(8, 64)
m = model(); o = torch.optim.SGD(m.parameters(), lr=0.1)
for step in range(100):
    tick(); o.zero_grad(); m(get_batch()).sum().backward(); o.step()
''', ANY_INPUT, "get_batch"),
    "torch_workers": (TORCH + '''
class Data(torch.utils.data.Dataset):
    def __len__(self): return 960
    def __getitem__(self, i): burn(4); return torch.zeros(64), torch.zeros(1)
m = model(); o = torch.optim.SGD(m.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=1):
    tick(); o.zero_grad(); ((m(x) - y) ** 2).mean().backward(); o.step()
''', ("input-bound",), None),
    "torch_lock": (TORCH + '''
import threading
def statistics():
    while True: burn(50)
threading.Thread(target=statistics, daemon=True).start()
m = model(); o = torch.optim.SGD(m.parameters(), lr=0.1); x = torch.zeros(8, 64)
for step in range(60):
    tick(); o.zero_grad()
    for _ in range(5): m(x).sum().backward()
    o.step()
''', ("host-python",), "statistics"),
    "tf_generator": (TF + '''
def batches():
    for _ in range(100): burn(15); yield np.ones((8, 256), np.float32)
for x in tf.data.Dataset.from_generator(batches, output_signature=tf.TensorSpec((8, 256), tf.float32)):
    tick(); train_step(x)
''', ("input-bound",), "batches"),
    "tf_validation": (TF + '''
@tf.function
def evaluate(x): return tf.reduce_sum(x @ w)
def report(loss): burn(15); return float(loss)
data = lambda n: tf.data.Dataset.from_tensors(tf.ones((8, 256))).repeat(n)
for epoch in range(5):
    for x in data(20): tick(); report(train_step(x))
    for x in data(10): evaluate(x)
''', ("host-python",), "report"),
    "tf_in_graph": (TF + '''
@tf.function
def train(steps):
    for _ in tf.range(steps): train_step(tf.random.normal((512, 256)))
tick(); train(tf.constant(40000)); tick()
''', ("compute-bound", "op-dominates", "dispatch-bound", "loop-overhead"), None),
    "tf_slow_map": (TF + '''
def slow(x): burn(3); return x
ds = tf.data.Dataset.range(800).map(lambda i: tf.ensure_shape(tf.py_function(slow, [tf.ones(256)], tf.float32), (256,))).batch(8)
for x in ds:
    tick(); train_step(x)
''', ("input-bound",), "slow"),
    "tf_metrics": (TF + '''
def log_metrics(loss): return burn(20) + float(loss)
for x in tf.data.Dataset.from_tensors(tf.ones((8, 256))).repeat(100):
    tick(); log_metrics(train_step(x))
''', ("host-python",), "log_metrics"),
    "tf_gan": (TF + '''
v = tf.Variable(tf.random.normal((256, 256)))
@tf.function
def other_step(x): v.assign_sub(1e-3 * (tf.transpose(x) @ x)); return tf.reduce_sum(v)
def sample(): burn(15); return tf.ones((8, 256))
for step in range(100):
    tick(); x = sample(); train_step(x); other_step(x)
''', ANY_INPUT, "sample"),
    "tf_session": (TICK + BURN + '''
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow.compat.v1 as tf, numpy as np
tf.disable_eager_execution()
x = tf.placeholder(tf.float32, (8, 256)); w = tf.Variable(tf.ones((256, 256)))
train = tf.assign_sub(w, 1e-3 * tf.matmul(x, tf.matmul(x, w), transpose_a=True))
def make_feed(): burn(15); return np.ones((8, 256), np.float32)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    for step in range(100):
        tick(); session.run(train, {x: make_feed()})
''', ANY_INPUT, "make_feed"),
    "keras_pydataset": (KERAS + '''
class Data(keras.utils.PyDataset):
    def __len__(self): return 60
    def __getitem__(self, i): burn(15); return np.ones((8, 32), "float32"), np.zeros((8, 1), "float32")
net().fit(Data(), epochs=2, verbose=0, callbacks=[Watch()])
''', ("input-bound",), "__getitem__"),
    "keras_fit": (KERAS + '''
x, y = np.ones((2400, 512), "float32"), np.zeros((2400, 1), "float32")
m = keras.Sequential([keras.layers.Dense(1500), keras.layers.Dense(1500), keras.layers.Dense(1)]); m.compile("sgd", "mse")
m.fit(x, y, batch_size=64, epochs=3, verbose=0, callbacks=[Watch()])
''', ("compute-bound", "op-dominates"), None),
    "keras_callback": (KERAS + '''
class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None): burn(20)
x, y = np.ones((480, 32), "float32"), np.zeros((480, 1), "float32")
net().fit(x, y, batch_size=8, epochs=2, validation_data=(x[:64], y[:64]), verbose=0, callbacks=[Watch(), Slow()])
''', ("host-python",), "on_train_batch_end"),
    "jax_feed": (JAX + '''
def make_batch(): burn(15); return np.ones((8, 256), np.float32)
for step in range(120):
    tick(); w = train_step(w, make_batch()); w.block_until_ready()
''', ANY_INPUT, "make_batch"),
    "jax_eval": (JAX + '''
evaluate = jax.jit(lambda w, x: jnp.sum(x @ w))
def log(value): burn(15); return float(value)
x = np.ones((8, 256), np.float32)
for step in range(120):
    tick(); w = train_step(w, x); log(w[0, 0])
    if step % 10 == 9: evaluate(w, x)
''', ("host-python",), "log"),
    "jax_compute": (JAX + '''
w = jnp.ones((900, 900)) * 1e-3; x = np.ones((900, 900), np.float32)
for step in range(80):
    tick(); w = train_step(w, x); w.block_until_ready()
''', ("compute-bound", "op-dominates", "dispatch-bound"), None),
}

#: How a script is started, if not by ``python train.py``.
LAUNCHES = {
    "torchrun": ("{bin}/torchrun", "--nproc-per-node", "2", "{script}"),
    "accelerate_launch": ("{bin}/accelerate", "launch", "--cpu", "--num_processes", "2", "{script}"),
    "mpirun": ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2", "{python}", "{script}"),
}
#: Scripts whose steps no call of theirs shows: the profile's own finder looks for them.
NO_STEPS = ("tf_in_graph",)
