"""DeepLabV3 on a residual network, of a size that two cores train in a moment.

K. He, X. Zhang, S. Ren, J. Sun: Deep residual learning for image recognition. CVPR (2016).
L.-C. Chen, G. Papandreou, F. Schroff, H. Adam: Rethinking atrous convolution for semantic image segmentation.
arXiv:1706.05587 (2017).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

# Channels of the residual network's stages. The last one is dilated in the place of being made smaller.
WIDTHS = (24, 48, 96)
# Of the pyramid: channels of each branch, and the dilations of its 3x3 convolutions.
BRANCH, RATES = 48, (2, 4, 6)


class Residual(nn.Module):
    """Two 3x3 convolutions beside a way around them; ``stride`` is that of the first."""

    def __init__(self, before: int, after: int, stride: int = 1, dilation: int = 1) -> None:
        super().__init__()
        self.first = _convolution(before, after, 3, stride, dilation)
        self.second = nn.Sequential(
            nn.Conv2d(after, after, 3, padding=dilation, dilation=dilation, bias=False), nn.BatchNorm2d(after)
        )
        same = before == after and stride == 1
        self.around = nn.Identity() if same else nn.Sequential(
            nn.Conv2d(before, after, 1, stride=stride, bias=False), nn.BatchNorm2d(after)
        )  # fmt: skip

    def forward(self, features: Tensor) -> Tensor:
        return torch.relu(self.second(self.first(features)) + self.around(features))


class Pyramid(nn.Module):
    """Features around each place in several distances, and of the picture (atrous spatial pyramid pooling)."""

    def __init__(self, before: int) -> None:
        super().__init__()
        near = _convolution(before, BRANCH, 1)
        self.branches = nn.ModuleList([near, *(_convolution(before, BRANCH, 3, dilation=rate) for rate in RATES)])
        self.whole = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(before, BRANCH, 1), nn.ReLU())
        self.together = _convolution(BRANCH * (len(RATES) + 2), BRANCH, 1)

    def forward(self, features: Tensor) -> Tensor:
        around: list[Tensor] = [branch(features) for branch in self.branches]
        around.append(self.whole(features).expand_as(around[0]))
        together: Tensor = self.together(torch.cat(around, dim=1))
        return together


class DeepLab(nn.Module):
    """From N x 3 x H x W to scores of N x ``classes`` x H/4 x W/4, which are for whoever asks to make larger again."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        first, second, third = WIDTHS
        self.body = nn.Sequential(
            _convolution(3, first, 3, stride=2),
            Residual(first, first),
            Residual(first, second, stride=2),
            Residual(second, third, dilation=2),
        )
        self.head = nn.Sequential(Pyramid(third), _convolution(BRANCH, BRANCH, 3), nn.Conv2d(BRANCH, classes, 1))

    def forward(self, images: Tensor) -> Tensor:
        scores: Tensor = self.head(self.body(images))
        return scores


def _convolution(before: int, after: int, size: int, stride: int = 1, dilation: int = 1) -> nn.Sequential:
    padding = dilation * (size // 2)
    return nn.Sequential(
        nn.Conv2d(before, after, size, stride=stride, padding=padding, dilation=dilation, bias=False),
        nn.BatchNorm2d(after),
        nn.ReLU(),
    )
