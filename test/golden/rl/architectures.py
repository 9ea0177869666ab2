"""Models of scripts/make/make-architecture.mjs in F32 -> log-probabilities and derivatives of an adapter, in float64.

    python3 test/golden/rl/architectures.py NAME=FILE... > test/golden/rl/architectures.json

With ONPOLICY_GOLDEN_FOLDER the test that reads them writes the file of phi3-long there.

Each derivative is along a drawn direction, by a complex step: exact to the last digits, and made of the forward pass alone. It knows nothing
of packed rows, chunks or kernels. Every function here is analytic in the adapter; experts are chosen by real parts.
"""
import json
import struct
import sys

import numpy as np

RANK, ALPHA, TOKENS, STEP = 4, 8.0, 40, 1e-30
FLOAT, STRING, ARRAY = 6, 8, 9
FORMATS = {0: 'B', 1: 'b', 2: 'H', 3: 'h', 4: 'I', 5: 'i', 6: 'f', 7: '?', 10: 'Q', 11: 'q', 12: 'd'}
# Kinds of matrices with an adapter, in this order.
MODULES = ('attn_q attn_k attn_v attn_qkv attn_gate ssm_ba attn_output ssm_out ffn_gate ffn_up ffn_down ffn_gate_shexp '
           'ffn_up_shexp ffn_down_shexp ffn_gate_exps ffn_up_exps ffn_down_exps ffn_gate_up_exps inp_gate proj laurel_l laurel_r').split()


class Gguf:
    """Metadata without its architecture's name in front, and tensors by name, the slowest dimension first."""

    def __init__(self, path):
        self.data = open(path, 'rb').read()
        self.at = 8
        count, pairs = self.take('Q'), self.take('Q')
        self.keys = dict((self.text(), self.value(self.take('I'))) for _ in range(pairs))
        self.architecture = self.keys['general.architecture']
        infos = [(self.text(), [self.take('Q') for _ in range(self.take('I'))], self.take('I'), self.take('Q')) for _ in range(count)]
        start = (self.at + 31) // 32 * 32
        self.tensors = {}
        for name, shape, kind, offset in infos:
            assert kind == 0, f'{name} is not of F32'
            numbers = np.frombuffer(self.data, '<f4', int(np.prod(shape)), start + offset)
            self.tensors[name] = numbers.astype(np.float64).reshape(shape[::-1])

    def take(self, form):
        value, = struct.unpack_from('<' + form, self.data, self.at)
        self.at += struct.calcsize(form)
        return value

    def text(self):
        size = self.take('Q')
        self.at += size
        return self.data[self.at - size:self.at].decode('utf-8', 'replace')

    def value(self, kind):
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            inner, count = self.take('I'), self.take('Q')
            return [self.value(inner) for _ in range(count)]
        return self.take(FORMATS[kind])

    def key(self, name, otherwise=None):
        return self.keys.get(f'{self.architecture}.{name}', otherwise)


def drawn(count, seed):
    """Numbers from -1 to 1; the test draws the same."""
    state, values = seed, []
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        values.append((state + 0.5) / 2**31 - 1)
    return np.array(values)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def gelu(x):
    return 0.5 * x * (1 + np.tanh(0.79788456 * (x + 0.044715 * x**3)))


def softmax(x):
    e = np.exp(x - x.real.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def softplus(x):
    return np.log(1 + np.exp(x))


class Model:
    def __init__(self, file):
        self.file, self.t = file, file.tensors
        self.eps = file.key('attention.layer_norm_rms_epsilon')
        self.heads = file.key('attention.head_count')
        self.layers = file.key('block_count')
        self.adapter = {}

    def has(self, layer, kind):
        return f'blk.{layer}.{kind}.weight' in self.t

    def w(self, layer, kind, end='weight'):
        return self.t[f'blk.{layer}.{kind}.{end}']

    def norm(self, x, weight=None):
        y = x / np.sqrt((x * x).mean(-1, keepdims=True) + self.eps)
        return y if weight is None else y * weight

    def linear(self, layer, kind, x):
        y = x @ self.w(layer, kind).T
        if (layer, kind) in self.adapter:
            a, b = self.adapter[layer, kind]
            y = y + ALPHA / RANK * (x @ a.T) @ b.T
        return y

    def rotate(self, x, size, base, factors=None, magnitude=1.0):
        """x: (tokens, heads, head size), whose first `size` numbers turn, i with i + size / 2."""
        half = size // 2
        angles = np.arange(len(x))[:, None] * base ** (-2 * np.arange(half) / size)
        if factors is not None:
            angles = angles / factors[:half]
        c, s = magnitude * np.cos(angles)[:, None], magnitude * np.sin(angles)[:, None]
        a, b = x[..., :half], x[..., half:size]
        return np.concatenate([a * c - b * s, a * s + b * c, x[..., size:]], -1)

    def attend(self, q, k, v, scale, window=0):
        tokens = len(q)
        behind = np.arange(tokens)[:, None] - np.arange(tokens)
        seen = (behind >= 0) & ((behind < window) if window else True)
        out = np.zeros((tokens, q.shape[1], v.shape[2]), complex)
        for head in range(q.shape[1]):
            kv = head * k.shape[1] // q.shape[1]
            scores = scale * q[:, head] @ k[:, kv].T
            out[:, head] = softmax(np.where(seen, scores, -np.inf)) @ v[:, kv]
        return out.reshape(tokens, -1)

    def experts(self, layer, x, scores, act):
        probabilities = softmax(scores)
        used = self.file.key('expert_used_count')
        y = np.zeros(x.shape, complex)
        for token in range(len(x)):
            chosen = np.argsort(-probabilities[token].real, kind='stable')[:used]
            shares = probabilities[token, chosen] / probabilities[token, chosen].sum()
            for expert, share in zip(chosen, shares):
                if self.has(layer, 'ffn_gate_up_exps'):
                    gate, up = np.split(self.of_expert(layer, 'ffn_gate_up_exps', expert, x[token]), 2)
                else:
                    gate, up = (self.of_expert(layer, f'ffn_{part}_exps', expert, x[token]) for part in ('gate', 'up'))
                y[token] += share * self.of_expert(layer, 'ffn_down_exps', expert, act(gate) * up)
        return y

    def of_expert(self, layer, kind, expert, x):
        y = self.w(layer, kind)[expert] @ x
        if f'blk.{layer}.{kind}.scale' in self.t:
            y = y * self.w(layer, kind, 'scale').reshape(-1)[expert]
        a, b = self.adapter[layer, kind]
        return y + ALPHA / RANK * b[expert] @ (a[expert] @ x)

    def feed_forward(self, layer, x, act, end=''):
        gate, up = self.linear(layer, 'ffn_gate' + end, x), self.linear(layer, 'ffn_up' + end, x)
        return self.linear(layer, 'ffn_down' + end, act(gate) * up)

    def logits(self, x):
        output = self.t.get('output.weight', self.t['token_embd.weight'])
        return self.norm(x, self.t['output_norm.weight']) @ output.T

    def embedded(self, tokens):
        return self.t['token_embd.weight'][tokens].astype(complex)


class Phi3(Model):
    """With the factors of long texts."""

    def forward(self, tokens):
        x = self.embedded(tokens)
        size = self.file.key('rope.dimension_count')
        factors = self.t['rope_factors_long.weight']
        for layer in range(self.layers):
            qkv = self.linear(layer, 'attn_qkv', self.norm(x, self.w(layer, 'attn_norm')))
            head = self.w(layer, 'attn_output').shape[1] // self.heads
            all_heads = qkv.reshape(len(x), -1, head)
            kv = (all_heads.shape[1] - self.heads) // 2
            q, k, v = np.split(all_heads, [self.heads, self.heads + kv], 1)
            turn = [size, self.file.key('rope.freq_base', 10000.0), factors, self.file.key('rope.scaling.attn_factor', 1.0)]
            x = x + self.linear(layer, 'attn_output', self.attend(self.rotate(q, *turn), self.rotate(k, *turn), v, head**-0.5))
            gate, up = np.split(self.linear(layer, 'ffn_up', self.norm(x, self.w(layer, 'ffn_norm'))), 2, -1)
            x = x + self.linear(layer, 'ffn_down', silu(gate) * up)
        return self.logits(x)


class Qwen3Next(Model):
    def attention(self, layer, x):
        head = self.file.key('attention.key_length')
        both = self.linear(layer, 'attn_q', x).reshape(len(x), self.heads, 2 * head)
        q, gate = both[..., :head], both[..., head:]
        k, v = (self.linear(layer, kind, x).reshape(len(x), -1, head) for kind in ('attn_k', 'attn_v'))
        turn = [self.file.key('rope.dimension_count'), self.file.key('rope.freq_base', 10000.0)]
        q, k = (self.rotate(self.norm(y, self.w(layer, f'attn_{name}_norm')), *turn) for y, name in ((q, 'q'), (k, 'k')))
        y = self.attend(q, k, v, head**-0.5) * sigmoid(gate.reshape(len(x), -1))
        return self.linear(layer, 'attn_output', y)

    def delta_net(self, layer, x):
        size, keys, values = (self.file.key(f'ssm.{name}') for name in ('state_size', 'group_count', 'time_step_rank'))
        mixed, z = self.linear(layer, 'attn_qkv', x), self.linear(layer, 'attn_gate', x)
        each = values // keys
        ba = self.linear(layer, 'ssm_ba', x).reshape(len(x), keys, 2 * each)
        beta = sigmoid(ba[..., :each].reshape(len(x), values))
        decay = softplus(ba[..., each:].reshape(len(x), values) + self.w(layer, 'ssm_dt', 'bias')) * self.t[f'blk.{layer}.ssm_a'].reshape(-1)
        kernel = self.w(layer, 'ssm_conv1d')  # (channels, kernel)
        padded = np.concatenate([np.zeros((kernel.shape[1] - 1, mixed.shape[1])), mixed])
        convolved = silu(sum(padded[i:i + len(x)] * kernel[:, i] for i in range(kernel.shape[1])))
        q, k, v = np.split(convolved, [size * keys, 2 * size * keys], 1)
        unit = lambda y: y / np.sqrt((y * y).sum(-1, keepdims=True))
        q, k = (np.repeat(unit(y.reshape(len(x), keys, size)), each, 1) for y in (q, k))
        v = v.reshape(len(x), values, -1)
        state, out = np.zeros((values, size, v.shape[2]), complex), []
        for token in range(len(x)):
            state = state * np.exp(decay[token])[:, None, None]
            delta = beta[token][:, None] * (v[token] - np.einsum('hkv,hk->hv', state, k[token]))
            state = state + k[token][:, :, None] * delta[:, None, :]
            out.append(np.einsum('hkv,hk->hv', state, q[token]) * size**-0.5)
        y = self.norm(np.array(out), self.w(layer, 'ssm_norm')) * silu(z.reshape(len(x), values, -1))
        return self.linear(layer, 'ssm_out', y.reshape(len(x), -1))

    def forward(self, tokens):
        x = self.embedded(tokens)
        for layer in range(self.layers):
            normed = self.norm(x, self.w(layer, 'attn_norm'))
            x = x + (self.delta_net(layer, normed) if self.has(layer, 'ssm_out') else self.attention(layer, normed))
            normed = self.norm(x, self.w(layer, 'post_attention_norm'))
            shared = self.feed_forward(layer, normed, silu, '_shexp')
            share = sigmoid(normed @ self.w(layer, 'ffn_gate_inp_shexp').reshape(-1))
            x = x + self.experts(layer, normed, normed @ self.w(layer, 'ffn_gate_inp').T, silu) + share[:, None] * shared
        return self.logits(x)


class Gemma4(Model):
    """With experts, without inputs of each layer's own."""

    def forward(self, tokens):
        width = self.file.key('embedding_length')
        x = self.embedded(tokens) * np.sqrt(width)
        pattern = self.file.key('attention.sliding_window_pattern')
        for layer in range(self.layers):
            is_window = bool(pattern[layer]) if isinstance(pattern, list) else (layer + 1) % pattern != 0
            end = '_swa' if is_window else ''
            normed = self.norm(x, self.w(layer, 'attn_norm'))
            head = self.file.key(f'attention.key_length{end}', self.file.key('attention.key_length'))
            turn = [self.file.key(f'rope.dimension_count{end}', head), self.file.key(f'rope.freq_base{end}', 10000.0),
                    None if is_window else self.t.get('rope_freqs.weight')]
            q = self.linear(layer, 'attn_q', normed).reshape(len(x), -1, head)
            k = self.linear(layer, 'attn_k', normed).reshape(len(x), -1, head)
            v = self.linear(layer, 'attn_v', normed).reshape(len(x), -1, head) if self.has(layer, 'attn_v') else k
            q, k = (self.rotate(self.norm(y, self.w(layer, f'attn_{name}_norm')), *turn) for y, name in ((q, 'q'), (k, 'k')))
            y = self.attend(q, k, self.norm(v), 1.0, self.file.key('attention.sliding_window') if is_window else 0)
            x = x + self.norm(self.linear(layer, 'attn_output', y), self.w(layer, 'post_attention_norm'))
            dense = self.feed_forward(layer, self.norm(x, self.w(layer, 'ffn_norm')), gelu)
            routed = self.norm(x) / np.sqrt(width) * self.w(layer, 'ffn_gate_inp', 'scale').reshape(-1)
            sum_of = self.experts(layer, self.norm(x, self.w(layer, 'pre_ffw_norm_2')), routed @ self.w(layer, 'ffn_gate_inp').T, gelu)
            both = self.norm(dense, self.w(layer, 'post_ffw_norm_1')) + self.norm(sum_of, self.w(layer, 'post_ffw_norm_2'))
            x = x + self.norm(both, self.w(layer, 'post_ffw_norm'))
            if self.has(layer, 'layer_output_scale'):
                x = x * self.w(layer, 'layer_output_scale').reshape(-1)
        cap = self.file.key('final_logit_softcapping', 0)
        logits = self.logits(x)
        return cap * np.tanh(logits / cap) if cap else logits


class Gemma3n(Model):
    """So few layers that all have windows, and their gates are sparse. `s` are the streams, (4, tokens, width)."""

    def length(self, x):
        return np.sqrt((x * x).sum(-1, keepdims=True))

    def routed(self, layer, x):
        return np.tanh(self.norm(x, self.w(layer, 'altup_router_norm')) / x.shape[-1] @ self.w(layer, 'altup_router').T)

    def sparse(self, x):
        deviation = np.sqrt(((x - x.mean(-1, keepdims=True)) ** 2).sum(-1, keepdims=True) / (x.shape[-1] - 1))
        y = x - x.mean(-1, keepdims=True) - 1.6448533535003662 * deviation
        return np.where(y.real > 0, y, 0)

    def own_inputs(self, tokens, x):
        size = self.file.key('embedding_length_per_layer_input')
        made = (x @ self.t['per_layer_model_proj.weight'].T / np.sqrt(x.shape[-1])).reshape(len(x), self.layers, size)
        looked_up = self.t['per_layer_token_embd.weight'][tokens].reshape(made.shape) * np.sqrt(size)
        return (self.norm(made, self.t['per_layer_proj_norm.weight']) + looked_up) / np.sqrt(2)

    def attention(self, layer, normed):
        head = self.file.key('attention.key_length')
        q, k, v = (self.linear(layer, f'attn_{name}', normed).reshape(len(normed), -1, head) for name in 'qkv')
        q, k = (self.rotate(self.norm(y, self.w(layer, f'attn_{name}_norm')), head, 10000.0) for y, name in ((q, 'q'), (k, 'k')))
        y = self.attend(q, k, self.norm(v), 1.0, self.file.key('attention.sliding_window'))
        return self.norm(self.linear(layer, 'attn_output', y), self.w(layer, 'post_attention_norm'))

    def forward(self, tokens):
        assert self.layers < 5
        first = self.embedded(tokens) * np.sqrt(self.file.key('embedding_length'))
        own = self.own_inputs(tokens, first)
        others = first @ self.t['altup_proj.weight'].transpose(0, 2, 1)
        s = np.concatenate([first[None], others * self.length(first) / self.length(others)])
        for layer in range(self.layers):
            shares = (self.routed(layer, s[0]) @ self.w(layer, 'altup_predict_coef').T).reshape(-1, 4, 4)
            predicted = s + np.einsum('itw,tji->jtw', s, shares)
            x = predicted[0]
            normed = self.norm(x, self.w(layer, 'attn_norm'))
            low = self.linear(layer, 'laurel_r', self.linear(layer, 'laurel_l', normed))
            laurel = normed + self.norm(low, self.w(layer, 'laurel_post_norm'))
            x = (x + self.attention(layer, normed) + laurel) / np.sqrt(2)
            fed = self.norm(x, self.w(layer, 'ffn_norm'))
            hidden = gelu(self.sparse(self.linear(layer, 'ffn_gate', fed))) * self.linear(layer, 'ffn_up', fed)
            x = x + self.norm(self.linear(layer, 'ffn_down', hidden), self.w(layer, 'post_ffw_norm'))
            corrections = 1 + self.routed(layer, x) @ self.w(layer, 'altup_correct_coef').T
            s = predicted + corrections.T[:, :, None] * (x - predicted[0])
            gated = gelu(self.linear(layer, 'inp_gate', s[0] * self.w(layer, 'altup_correct_scale'))) * own[:, layer]
            added = self.norm(self.linear(layer, 'proj', gated), self.w(layer, 'post_norm'))
            s = np.concatenate([s[:1], s[1:] + added])
        others = s[1:] @ self.t['altup_unembd_proj.weight'].transpose(0, 2, 1)
        merged = (s[0] + (others * self.length(s[0]) / self.length(others)).sum(0)) / 4
        return 30 * np.tanh(self.logits(merged) / 30)


CLASSES = {'phi3': Phi3, 'qwen3next': Qwen3Next, 'gemma4': Gemma4, 'gemma3n': Gemma3n}


def golden(path):
    file = Gguf(path)
    model = CLASSES[file.architecture](file)
    tokens = [(i * 53 + i % 7) % 250 for i in range(TOKENS)]
    weights = drawn(TOKENS - 1, 1) / 8
    modules = [(layer, kind) for layer in range(model.layers) for kind in MODULES if model.has(layer, kind)]
    for number, (layer, kind) in enumerate(modules):
        *experts, out, size = model.w(layer, kind).shape
        shapes = [*experts, RANK, size], [*experts, out, RANK]
        model.adapter[layer, kind] = [
            (drawn(int(np.prod(shape)), 1000 + 2 * number + place).astype(np.float32) / np.float32(16)).astype(float).reshape(shape)
            for place, shape in enumerate(shapes)
        ]

    def logprobs():
        logits = model.forward(tokens)[:-1]
        shifted = logits - logits.real.max(-1, keepdims=True)
        return (shifted - np.log(np.exp(shifted).sum(-1, keepdims=True)))[np.arange(TOKENS - 1), tokens[1:]]

    result = {'logprobs': list(logprobs().real), 'derivatives': {}}
    for number, (layer, kind) in enumerate(modules):
        for place, factor in enumerate('ab'):
            own = model.adapter[layer, kind][place]
            direction = drawn(own.size, 5000 + 2 * number + place).reshape(own.shape)
            model.adapter[layer, kind][place] = own + 1j * STEP * direction
            result['derivatives'][f'blk.{layer}.{kind}.{factor}'] = float((weights * logprobs()).sum().imag / STEP)
            model.adapter[layer, kind][place] = own
    return result


print(json.dumps({name: golden(path) for name, path in (given.split('=', 1) for given in sys.argv[1:])}, indent=1))
