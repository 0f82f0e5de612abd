"""A PyTorch loop over a loader, recorded from inside."""
import stepscope
import torch

model = torch.nn.Sequential(torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(10))
data = torch.utils.data.TensorDataset(torch.rand(1024, 3, 48, 48), torch.randint(0, 10, (1024,)))
loader = torch.utils.data.DataLoader(data, batch_size=32)
model(data[0][0][None])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def train_step(x, y):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()


with stepscope.window("logs", warmup=5, steps=20) as w:
    for x, y in w.wrap(loader):
        train_step(x, y)
