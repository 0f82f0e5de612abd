"""Trains with PyTorch."""
import torch


def make_batch():
    values = []
    for place in range(512 * 256):
        values.append(place % 7 / 7)
    return torch.tensor(values).reshape(512, 256), torch.zeros(512, 1)


model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step in range(200):
    x, y = make_batch()
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
