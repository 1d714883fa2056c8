"""Resumes from a checkpoint with more than tensors in it, which torch.load refuses since 2.6 unless told otherwise."""

import argparse
import tempfile

import torch

with tempfile.TemporaryDirectory() as folder:
    path = f"{folder}/last.ckpt"
    torch.save({"hyper_parameters": argparse.Namespace(lr=0.1)}, path)
    torch.load(path)

import train  # noqa: F401
