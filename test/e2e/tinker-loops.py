"""Loops of Tinker's Python package against the server of TINKER_BASE_URL. Prints what they measured as one line of JSON."""

import json
import os
import urllib.request

import numpy as np
import tinker
from tinker import types

BASE = os.environ["TINKER_BASE_URL"]
MODEL = os.environ["TINKER_MODEL"]
ADAM = types.AdamParams(learning_rate=5e-3)


def tokenize(text):
    body = json.dumps({"model": MODEL, "prompt": text, "add_special_tokens": False}).encode()
    headers = {"Content-Type": "application/json", "X-API-Key": os.environ["TINKER_API_KEY"]}
    request = urllib.request.Request(f"{BASE}/tokenize", data=body, headers=headers)
    with urllib.request.urlopen(request) as response:
        return json.load(response)["tokens"]


def definition(loss_fn, config, fresh, datum):
    """The loss as Tinker's docs define it, in 64-bit floats."""
    column = {name: tensor.to_numpy().astype(np.float64) for name, tensor in datum.loss_fn_inputs.items()}
    if loss_fn == "cross_entropy":
        return -(fresh * column["weights"]).sum()
    old, advantages = column["logprobs"], column["advantages"]
    ratio = np.exp(fresh - old)
    if loss_fn == "importance_sampling":
        return -(ratio * advantages).sum()
    if loss_fn == "dro":
        return -(fresh * advantages - 0.5 * config.get("beta", 0.05) * (fresh - old) ** 2).sum()
    low, high = (0.8, 1.2) if loss_fn == "ppo" else (0.0, 4.0)
    clipped = np.clip(ratio, config.get("clip_low_threshold", low), config.get("clip_high_threshold", high))
    if loss_fn == "ppo":
        return -np.minimum(ratio * advantages, clipped * advantages).sum()
    return -(clipped * fresh * advantages).sum()


def off_by(result, loss_fn, config, data):
    fresh = [out["logprobs"].to_numpy().astype(np.float64) for out in result.loss_fn_outputs]
    wanted = sum(definition(loss_fn, config, one, datum) for one, datum in zip(fresh, data, strict=True))
    return abs(result.metrics["loss:sum"] - wanted) / max(1.0, abs(wanted))


def lesson(prompt, answer):
    tokens = prompt + answer
    weights = [0.0] * (len(prompt) - 1) + [1.0] * len(answer)
    return types.Datum(
        model_input=types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={"target_tokens": tokens[1:], "weights": weights},
    )


def attempt(prompt, sequence, advantage):
    tokens = prompt + sequence.tokens
    before = [0.0] * (len(prompt) - 1)
    return types.Datum(
        model_input=types.ModelInput.from_ints(tokens[:-1]),
        loss_fn_inputs={
            "target_tokens": tokens[1:],
            "logprobs": before + sequence.logprobs,
            "advantages": before + [advantage] * len(sequence.tokens),
        },
    )


def failure(work):
    try:
        work()
    except Exception as error:  # its class and words are what is measured
        return f"{type(error).__name__}: {error}"
    return None


def main():
    service = tinker.ServiceClient()
    found = {"models": [one.model_name for one in service.get_server_capabilities().supported_models]}
    trainer = service.create_lora_training_client(base_model=MODEL, rank=8, seed=1)
    info = trainer.get_info()
    found["info"] = [info.model_name, info.is_lora, info.lora_rank]

    # Supervised: the loss falls, and greedy answers change.
    prompt, answer = tokenize("The capital of Peru is"), tokenize(" Quito, of course.")
    data = [lesson(prompt, answer)]
    greedy = types.SamplingParams(max_tokens=len(answer), temperature=0.0)
    asked = types.ModelInput.from_ints(prompt)
    base = service.create_sampling_client(base_model=MODEL)
    found["base_model"] = base.get_base_model()
    before = base.sample(asked, 1, greedy).result().sequences[0].tokens
    losses, worst = [], 0.0
    for _ in range(12):
        learned = trainer.forward_backward(data, "cross_entropy")
        stepped = trainer.optim_step(ADAM)
        result = learned.result()
        stepped.result()
        losses.append(result.metrics["loss:sum"] / len(answer))
        worst = max(worst, off_by(result, "cross_entropy", {}, data))
    sampler = trainer.save_weights_and_get_sampling_client()
    after = sampler.sample(asked, 1, greedy).result().sequences[0].tokens
    found["losses"] = losses
    found["said"] = {"before": before == answer, "after": after == answer}

    # The sampler and the trainer agree on the same weights, and the likeliest tokens contain the greedy ones.
    whole = prompt + answer
    scored = sampler.compute_logprobs(types.ModelInput.from_ints(whole)).result()
    forward = trainer.forward(data, "cross_entropy").result().loss_fn_outputs[0]["logprobs"].to_numpy()
    found["gap"] = float(np.abs(np.array(scored[1:]) - forward).max())
    ranked = sampler.sample(types.ModelInput.from_ints(whole), 1, greedy, True, 3).result().topk_prompt_logprobs
    found["top"] = [ranked[0], *(len(one) for one in ranked[1:3])]
    found["likeliest"] = [one[0][0] for one in ranked[len(prompt) :]] == answer

    # Reinforcement: what begins with a token becomes likelier.
    start = tokenize("The capital of")
    begun = types.ModelInput.from_ints(start)
    learner = service.create_lora_training_client(base_model=MODEL, rank=8, seed=2)
    policy = learner.save_weights_and_get_sampling_client()

    def sampled(client, count, seed):
        params = types.SamplingParams(max_tokens=4, temperature=1.0, seed=seed)
        return client.sample(begun, count, params).result().sequences

    first = [one.tokens[0] for one in sampled(policy, 64, 1)]
    wanted = sorted(set(first), key=first.count)[-2]  # the second likeliest
    found["shares"] = [first.count(wanted) / len(first)]

    def attempts(seed):
        sequences = sampled(policy, 32, seed)
        rewards = [float(one.tokens[0] == wanted) for one in sequences]
        mean = sum(rewards) / len(rewards)
        return [attempt(start, one, reward - mean) for one, reward in zip(sequences, rewards, strict=True)]

    for round in range(8):
        learner.forward_backward(attempts(2 + round), "importance_sampling").result()
        learner.optim_step(types.AdamParams(learning_rate=1e-3)).result()
        policy = learner.save_weights_and_get_sampling_client()
    first = [one.tokens[0] for one in sampled(policy, 64, 1)]
    found["shares"].append(first.count(wanted) / len(first))

    # Each loss is what the docs define, also where the ratios are not 1.
    for loss_fn, config in [
        ("importance_sampling", {}),
        ("ppo", {}),
        ("ppo", {"clip_low_threshold": 0.9, "clip_high_threshold": 1.1}),
        ("cispo", {}),
        ("dro", {"beta": 0.1}),
    ]:
        tried = attempts(1)
        for _ in range(2):
            result = learner.forward_backward(tried, loss_fn, config or None).result()
            worst = max(worst, off_by(result, loss_fn, config, tried))
            learner.optim_step(ADAM).result()
    found["off"] = worst

    # Many data, which the package sends in two requests, the second one first.
    many = trainer.forward([lesson(prompt, answer[:2])] * 1030, "cross_entropy").result()
    found["many"] = [len(many.loss_fn_outputs), float(np.ptp([one["logprobs"].to_numpy()[-1] for one in many.loss_fn_outputs]))]

    # Weights are saved, loaded, and continued by another client.
    saved = trainer.save_state("step-12").result().path
    found["taken"] = failure(lambda: trainer.save_state("step-12").result())
    trainer.save_state("step-12", overwrite=True).result()
    named = trainer.save_weights_for_sampler("final").result().path
    found["paths"] = [saved, named]
    trainer.forward_backward(data, "cross_entropy").result()
    trainer.optim_step(ADAM).result()
    trainer.load_state_with_optimizer(saved).result()
    again = trainer.forward(data, "cross_entropy").result().loss_fn_outputs[0]["logprobs"].to_numpy()
    heir = service.create_training_client_from_state_with_optimizer(saved)
    inherited = heir.forward(data, "cross_entropy").result().loss_fn_outputs[0]["logprobs"].to_numpy()
    found["restored"] = [bool((again == forward).all()), bool((inherited == forward).all())]
    by_name = service.create_sampling_client(model_path=named)
    found["by_name"] = by_name.sample(asked, 1, greedy).result().sequences[0].tokens == answer

    # Some requests are refused, by name; later steps go on.
    picture = types.ModelInput(chunks=[types.ImageChunk(data=b"x", format="png", expected_tokens=1)])
    masked = types.Datum(
        model_input=data[0].model_input,
        loss_fn_inputs={**data[0].loss_fn_inputs, "mask": types.TensorData(data=[1.0], dtype="float32", shape=[1])},
    )
    unknown = types.Datum(model_input=types.ModelInput.from_ints([10**8]), loss_fn_inputs={"target_tokens": [1]})
    found["refused"] = [
        failure(lambda: trainer.forward_backward(data, "grpo").result()),
        failure(lambda: trainer.forward_backward([types.Datum(picture, {"target_tokens": [1]})], "cross_entropy").result()),
        failure(lambda: trainer.forward_backward([masked], "cross_entropy").result()),
        failure(lambda: trainer.forward_backward(data, "ppo").result()),
        failure(lambda: trainer.forward_backward([unknown], "cross_entropy").result()),
        failure(lambda: base.sample(picture, 1, greedy).result()),
        failure(lambda: service.create_lora_training_client(base_model="nobody")),
    ]
    found["goes_on"] = trainer.forward(data, "cross_entropy").result().metrics["loss:sum"] > 0

    # Stops are the last tokens of an answer.
    stop = types.SamplingParams(max_tokens=len(answer), temperature=0.0, stop=[answer[1]])
    ended = sampler.sample(asked, 2, stop).result().sequences
    found["stopped"] = [[one.stop_reason, one.tokens == answer[:2], len(one.logprobs)] for one in ended]
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
