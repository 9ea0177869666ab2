# Rows on standard input (scripts/make/seeing/rows.mjs) -> weights of a text model and of a vision encoder, under the names of GGUF files.
# Needs PyTorch and NumPy. Its one argument is JSON: sizes, minutes, threads, rate, seed, out, from.
import json
import math
import os
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

S = json.loads(sys.argv[1])
SIDE, PATCH, TOKENS, VOCABULARY = S["side"], S["patch"], S["rowTokens"], S["vocabulary"]
PATCHES = (SIDE // PATCH) ** 2
EYES, TEXT = S["eyes"], S["text"]  # width, heads, layers, ffn
BATCH = S["batch"]
ALONE = 0.12  # of the time the encoder learns to label patches, without the text model
torch.set_num_threads(S["threads"])
torch.manual_seed(S["seed"])


def initial_weights():
    weights = {}

    def matrix(name, out, size, scale=1.0):
        weights[name] = torch.randn(out, size) * scale / math.sqrt(size)

    def vector(name, size, value):
        weights[name] = torch.full((size,), float(value))

    def norm(name, size, has_bias):
        vector(name + ".weight", size, 1)
        if has_bias:
            vector(name + ".bias", size, 0)

    width, ffn = EYES["width"], EYES["ffn"]
    weights["v.patch_embd.weight"] = torch.randn(width, 3, PATCH, PATCH) / math.sqrt(3 * PATCH * PATCH)
    vector("v.patch_embd.bias", width, 0)
    weights["v.position_embd.weight"] = 0.3 * torch.randn(PATCHES, width)
    for i in range(EYES["layers"]):
        b = f"v.blk.{i}."
        residual = 1 / math.sqrt(2 * EYES["layers"])
        norm(b + "ln1", width, True)
        norm(b + "ln2", width, True)
        for name, scale in (("attn_q", 1), ("attn_k", 1), ("attn_v", 1), ("attn_out", residual)):
            matrix(f"{b}{name}.weight", width, width, scale)
            vector(f"{b}{name}.bias", width, 0)
        matrix(b + "ffn_up.weight", ffn, width)
        vector(b + "ffn_up.bias", ffn, 0)
        matrix(b + "ffn_down.weight", width, ffn, residual)
        vector(b + "ffn_down.bias", width, 0)
    norm("v.post_ln", width, True)
    matrix("mm.0.weight", 2 * width, width)
    vector("mm.0.bias", 2 * width, 0)
    matrix("mm.1.weight", TEXT["width"], 2 * width)
    vector("mm.1.bias", TEXT["width"], 0)

    width, ffn = TEXT["width"], TEXT["ffn"]
    weights["token_embd.weight"] = 0.05 * torch.randn(VOCABULARY, width)
    for i in range(TEXT["layers"]):
        b = f"blk.{i}."
        residual = 1 / math.sqrt(2 * TEXT["layers"])
        norm(b + "attn_norm", width, False)
        norm(b + "ffn_norm", width, False)
        for name, scale in (("attn_q", 1), ("attn_k", 1), ("attn_v", 1), ("attn_output", residual)):
            matrix(f"{b}{name}.weight", width, width, scale)
        matrix(b + "ffn_gate.weight", ffn, width)
        matrix(b + "ffn_up.weight", ffn, width)
        matrix(b + "ffn_down.weight", width, ffn, residual)
    norm("output_norm", width, False)
    return weights


W = initial_weights()
if S["from"]:
    with open(S["from"], "rb") as file:
        for name, shape in json.loads(file.readline()):
            values = np.fromfile(file, np.float32, math.prod(shape))
            W[name] = torch.from_numpy(values.reshape(shape).copy())
KINDS = S["labels"]  # of shapes, colors and places, background included
LABELS = torch.zeros(sum(KINDS), TEXT["width"])  # reads labels off a patch's row; not shipped
PARAMETERS = [*W.values(), LABELS]
for parameter in PARAMETERS:
    parameter.requires_grad_(True)


def linear(x, name):
    return F.linear(x, W[name + ".weight"], W.get(name + ".bias"))


def heads_of(x, heads):
    rows, size, width = x.shape
    return x.view(rows, size, heads, width // heads).transpose(1, 2)


def attend(q, k, v, mask):
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores + mask
    mixed = torch.softmax(scores, -1) @ v
    return mixed.transpose(1, 2).flatten(2)


def see(pixels):
    """(rows, side, side, 3) bytes -> (rows, patches, text width)"""
    width, heads = EYES["width"], EYES["heads"]
    x = F.conv2d(pixels.permute(0, 3, 1, 2).float() / 127.5 - 1, W["v.patch_embd.weight"], stride=PATCH)
    x = x.flatten(2).transpose(1, 2) + W["v.patch_embd.bias"] + W["v.position_embd.weight"]

    def norm(x, name):
        return F.layer_norm(x, (width,), W[name + ".weight"], W[name + ".bias"], 1e-6)

    for i in range(EYES["layers"]):
        b = f"v.blk.{i}."
        h = norm(x, b + "ln1")
        q, k, v = (heads_of(linear(h, b + name), heads) for name in ("attn_q", "attn_k", "attn_v"))
        x = x + linear(attend(q, k, v, None), b + "attn_out")
        h = linear(norm(x, b + "ln2"), b + "ffn_up")
        x = x + linear(F.gelu(h, approximate="tanh"), b + "ffn_down")
    x = norm(x, "v.post_ln")
    return linear(F.gelu(linear(x, "mm.0"), approximate="tanh"), "mm.1")


def rotation():
    size = TEXT["width"] // TEXT["heads"]
    angles = torch.arange(TOKENS)[:, None] * 10000 ** (-torch.arange(0, size, 2) / size)
    return torch.cos(angles), torch.sin(angles)


COS, SIN = rotation()
CAUSAL = torch.full((TOKENS, TOKENS), float("-inf")).triu(1)


def rotate(x):
    even, odd = x[..., 0::2], x[..., 1::2]  # llama.cpp turns neighbours of this architecture
    return torch.stack((even * COS - odd * SIN, even * SIN + odd * COS), -1).flatten(-2)


def read(ids, seen):
    """ids (rows, tokens) with -1 for a picture's rows, those rows -> (rows, tokens, width)"""
    heads = TEXT["heads"]
    x = F.embedding(ids.clamp(min=0), W["token_embd.weight"])
    x = x.masked_scatter((ids < 0)[..., None], seen)

    def norm(x, name):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * W[name + ".weight"]

    for i in range(TEXT["layers"]):
        b = f"blk.{i}."
        h = norm(x, b + "attn_norm")
        q, k, v = (heads_of(linear(h, b + name), heads) for name in ("attn_q", "attn_k", "attn_v"))
        x = x + linear(attend(rotate(q), rotate(k), v, CAUSAL), b + "attn_output")
        h = norm(x, b + "ffn_norm")
        x = x + linear(F.silu(linear(h, b + "ffn_gate")) * linear(h, b + "ffn_up"), b + "ffn_down")
    return norm(x, "output_norm")


def draw_batch():
    sizes = (3 * SIDE * SIDE, len(KINDS) * PATCHES, 2 * TOKENS, TOKENS)
    data = sys.stdin.buffer.read(BATCH * sum(sizes))
    rows = np.frombuffer(data, np.uint8).reshape(BATCH, -1)
    pixels, labels, ids, learnt = np.split(rows, np.cumsum(sizes)[:-1], axis=1)
    return (
        torch.from_numpy(pixels.reshape(BATCH, SIDE, SIDE, 3).copy()),
        torch.from_numpy(labels.reshape(BATCH, PATCHES, len(KINDS)).astype(np.int64)),
        torch.from_numpy(np.ascontiguousarray(ids).view(np.int16).astype(np.int64)),
        torch.from_numpy(learnt.astype(bool)),
    )


def label_loss(seen, labels):
    scores = F.linear(seen, LABELS).flatten(0, 1).split(KINDS, 1)
    return sum(F.cross_entropy(of, labels[..., i].flatten()) for i, of in enumerate(scores))


def text_loss(ids, seen, learnt):
    hidden = read(ids, seen)[:, :-1][learnt[:, 1:]]
    scores = F.linear(hidden, W["token_embd.weight"])
    targets = ids[:, 1:][learnt[:, 1:]]
    return F.cross_entropy(scores, targets), (scores.argmax(-1) == targets).float().mean()


def save():
    """A line of JSON, [[name, shape], ...], then their 32-bit numbers."""
    with open(S["out"] + ".partial", "wb") as file:
        file.write((json.dumps([[name, list(weight.shape)] for name, weight in W.items()]) + "\n").encode())
        for weight in W.values():
            weight.detach().numpy().tofile(file)
    os.replace(S["out"] + ".partial", S["out"])


matrices = [p for p in PARAMETERS if p.dim() > 1]
vectors = [p for p in PARAMETERS if p.dim() == 1]
optimizer = torch.optim.AdamW(
    [{"params": matrices, "weight_decay": 0.02}, {"params": vectors, "weight_decay": 0}], lr=1e-3, betas=(0.9, 0.98)
)
start = time.process_time()  # other programs do not count
shown = None
step = 0
while True:
    progress = (time.process_time() - start) / 60 / S["minutes"]
    if progress >= 1:
        break
    step += 1
    rate = S["rate"] * min(1, step / 100) * (0.02 + 0.98 * (1 + math.cos(math.pi * progress)) / 2)
    for group in optimizer.param_groups:
        group["lr"] = rate
    pixels, labels, ids, learnt = draw_batch()
    seen = see(pixels)
    patches = label_loss(seen, labels)
    right = torch.zeros(())
    if progress < ALONE and not S["from"]:
        loss = patches
    else:
        loss, right = text_loss(ids, seen, learnt)
        loss = loss + 0.2 * patches
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(PARAMETERS, 1.0)
    optimizer.step()
    now = np.array([loss.item(), patches.item(), right.item()])
    shown = now if shown is None else 0.95 * shown + 0.05 * now
    if step % S["report"] == 0:
        save()
        print(
            f"step {step}, {100 * progress:.0f} %, loss {shown[0]:.3f}, patches {shown[1]:.3f}, tokens right {shown[2]:.3f}",
            flush=True,
        )
save()
