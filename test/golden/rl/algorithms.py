# The formulas of the papers, in float64, with gradients by PyTorch's automatic differentiation -> algorithms.json.
# Run in this folder with Debian's python3-torch: /usr/bin/python3 algorithms.py
# Means over tokens divide by their count + 1e-6, spreads have 1e-6 added, as docs/agents.md says.
import json
import torch

torch.set_default_dtype(torch.float64)
torch.manual_seed(26)
E = 1e-6
LENGTHS = [[3, 5, 2, 4], [6, 1, 4, 3]]  # tokens of each answer, by group
REWARDS = [[1.0, 0.0, 0.25, 0.5], [0.0, 2.0, 1.0, -0.5]]
flat = [n for group in LENGTHS for n in group]
T, N = sum(flat), len(flat)
answer_of = [i for i, n in enumerate(flat) for _ in range(n)]
starts = [sum(flat[:i]) for i in range(N)]
new = (-torch.rand(T) * 3).requires_grad_()
old = (new.detach() + 0.4 * torch.randn(T)).clamp(max=-1e-3)
ref = (new.detach() + 0.3 * torch.randn(T)).clamp(max=-1e-3)
teacher = (new.detach() + 0.5 * torch.randn(T)).clamp(max=-1e-3)


def spread(x):
    return x.std(unbiased=False) + E


def by_group(f, rewards=REWARDS):
    return torch.cat([f(torch.tensor(group)) for group in rewards])


def sequence_mean(tokens):  # of answers of the mean of their tokens; constant factors as in the trainer
    total = sum(tokens[s : s + n].sum() / (n + E) for s, n in zip(starts, flat))
    return total / (sum(n / (n + E) for n in flat) / T) / (T + E)


def token_mean(tokens):
    return tokens.sum() / (T + E)


def clipped(advantages, low, high, ratio=None):
    r = torch.exp(new - old) if ratio is None else ratio
    a = advantages[answer_of]
    return -torch.minimum(r * a, r.clamp(1 - low, 1 + high) * a)


def importance_weighted(advantages, high=4.0):
    r = torch.exp(new - old).clamp(0, 1 + high).detach()
    return -r * advantages[answer_of] * new


def sequence_ratio():
    d = new - old
    return torch.stack([d[s : s + n].mean() for s, n in zip(starts, flat)]).exp()[answer_of]


def k3():
    gap = ref - new
    return torch.exp(gap) - gap - 1


def overlong(length, buffer):
    lose = lambda n: 0.0 if n <= length - buffer else (1.0 if n > length else (n - (length - buffer)) / buffer)
    return [[r - lose(n) for r, n in zip(*pair)] for pair in zip(REWARDS, LENGTHS)]


scaled = by_group(lambda r: (r - r.mean()) / spread(r))
centred = by_group(lambda r: r - r.mean())
others = by_group(lambda r: torch.stack([r[i] - (r.sum() - r[i]) / (len(r) - 1) for i in range(len(r))]))
all_rewards = torch.tensor([r for group in REWARDS for r in group])
batch = (all_rewards - all_rewards.mean()) / spread(all_rewards)
shaped = by_group(lambda r: (r - r.mean()) / spread(r), overlong(5, 3))

CASES = [
    ("grpo", {}, scaled, lambda a: sequence_mean(clipped(a, 0.2, 0.2))),
    ("grpo", {"kl_loss_coef": 0.04}, scaled, lambda a: sequence_mean(clipped(a, 0.2, 0.2) + 0.04 * k3())),
    ("dr_grpo", {"loss_length": 16}, centred, lambda a: clipped(a, 0.2, 0.2).sum() / (N * 16)),
    ("dapo", {}, scaled, lambda a: token_mean(clipped(a, 0.2, 0.28))),
    ("dapo", {"overlong_length": 5, "overlong_buffer": 3}, shaped, lambda a: token_mean(clipped(a, 0.2, 0.28))),
    ("gspo", {}, scaled, lambda a: sequence_mean(clipped(a, 3e-4, 4e-4, sequence_ratio()))),
    ("gspo", {"epsilon": 0.3, "epsilon_high": 0.4}, scaled, lambda a: sequence_mean(clipped(a, 0.3, 0.4, sequence_ratio()))),
    ("rloo", {}, others, lambda a: token_mean(importance_weighted(a))),
    ("reinforce_plus_plus", {}, batch, lambda a: token_mean(clipped(a, 0.2, 0.2))),
    ("cispo", {"normalize_advantages": False}, scaled, lambda a: token_mean(importance_weighted(a))),
]


def result(loss):
    (gradient,) = torch.autograd.grad(loss, new)
    return {"loss": loss.item(), "gradient": gradient.tolist()}


def answer_ratios():
    d = new - ref
    return torch.stack([d[s : s + n].sum() for s, n in zip(starts, flat)])


def dpo(beta):  # answers 0 and 1, 2 and 3, ...: the first of each is preferred
    x = answer_ratios()
    return -torch.nn.functional.logsigmoid(beta * (x[0::2] - x[1::2])).mean()


def kto(beta):  # every second answer is preferred
    x = answer_ratios()
    z = x.mean().clamp(min=0).detach()
    wanted = 1 - torch.sigmoid(beta * (x[0::2] - z))
    unwanted = 1 - torch.sigmoid(beta * (z - x[1::2]))
    return torch.cat([wanted, unwanted]).mean()


def reverse_kl():  # policy gradient of log student - log teacher, sampled by the student
    r = torch.exp(new - old)
    return -(r.clamp(0, 5).detach() * (teacher - old) * new).sum() / (T + E)


json.dump(
    {
        "lengths": LENGTHS,
        "rewards": REWARDS,
        "new_logprobs": new.tolist(),
        "old_logprobs": old.tolist(),
        "ref_logprobs": ref.tolist(),
        "teacher_logprobs": teacher.tolist(),
        "policy": [
            {"algorithm": name, "config": config, "advantages": a.tolist(), **result(loss(a))}
            for name, config, a, loss in CASES
        ],
        "preference": [
            {"config": {"preference_loss": f.__name__, "preference_beta": beta}, **result(f(beta))}
            for f in (dpo, kto)
            for beta in (0.1, 0.5, 20.0)
        ],
        "distillation": result(reverse_kl()),
    },
    open("algorithms.json", "w"),
    indent=1,
)
