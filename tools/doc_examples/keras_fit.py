"""`model.fit` with small batches, recorded from inside."""
import keras
import numpy as np
import stepscope

x, y = np.random.rand(2048, 256).astype("float32"), np.random.randint(0, 10, 2048)
layers = [keras.layers.Dense(128, activation="relu"), keras.layers.Dense(128, activation="relu"), keras.layers.Dense(10)]
model = keras.Sequential(layers)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x, y, batch_size=32, verbose=0, callbacks=[stepscope.KerasCallback("logs", warmup=10, steps=20)])
