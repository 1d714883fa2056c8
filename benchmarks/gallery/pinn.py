"""A physics-informed network solves Burgers' equation: its loss has the network's own second derivatives.

u_t + u u_x = v u_xx for x from -1 to 1 and t from 0 to 1; u = -sin(pi x) at the beginning, and 0 at both ends.
"""

import argparse
import math
import time

import torch
from torch import Tensor, nn

VISCOSITY = 0.01 / math.pi
WIDTH = 64
LAYERS = 6
INSIDE = 20_000  # points where the equation is to hold
AT_EDGES = 1000


def derivative(of: Tensor, by: Tensor) -> Tensor:
    return torch.autograd.grad(of.sum(), by, create_graph=True)[0]


def network() -> nn.Module:
    layers: list[nn.Module] = []
    inputs = 2
    for _ in range(LAYERS):
        layers += [nn.Linear(inputs, WIDTH), nn.Tanh()]
        inputs = WIDTH
    return nn.Sequential(*layers, nn.Linear(WIDTH, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100, metavar="N", help="how many updates (default: 100)")
    steps = parser.parse_args().steps

    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

    def solution(x: Tensor, t: Tensor) -> Tensor:
        return model(torch.cat([x, t], dim=1))

    for step in range(1, steps + 1):
        begin = time.perf_counter()
        x = (2 * torch.rand(INSIDE, 1, generator=generator) - 1).requires_grad_()
        t = torch.rand(INSIDE, 1, generator=generator).requires_grad_()
        u = solution(x, t)
        u_x = derivative(u, x)
        equation = derivative(u, t) + u * u_x - VISCOSITY * derivative(u_x, x)

        x_first = 2 * torch.rand(AT_EDGES, 1, generator=generator) - 1
        first = solution(x_first, torch.zeros_like(x_first)) + torch.sin(math.pi * x_first)
        t_edge = torch.rand(AT_EDGES, 1, generator=generator)
        side = 2.0 * torch.randint(2, (AT_EDGES, 1), generator=generator) - 1
        edge = solution(side, t_edge)

        loss = equation.square().mean() + first.square().mean() + edge.square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: {time.perf_counter() - begin:.4f} s, loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
