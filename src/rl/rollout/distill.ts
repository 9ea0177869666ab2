/** A student, a teacher and conversations to continue -> a student that answers as the teacher does, in the steps of a training run. */
import { seedOf, shuffled } from '../../common/index.ts';
import { errorAt, OnpolicyError } from '../../errors.ts';
import {
  type Arguments,
  type ChatCompletion,
  type ChatCompletionRequest,
  checkArguments,
  type Datum,
  type Message,
  type MetricValues,
  type TextCompletion,
  type Tool,
  withDefaults,
} from '../../protocol/index.ts';
import type { Completions, Service } from '../../protocol/service/index.ts';
import { wrongInput } from './wrong-input.ts';

/** A conversation whose next turn the student learns. */
export type DistillTask = {
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[] | null | undefined;
};

/** The model that the student learns from. */
export type DistillTeacher = {
  /** Default: the student's service. */
  readonly service?: Completions | undefined;
  /** Model name at that service. Default: the base model of the student's service. */
  readonly model?: string | undefined;
  /** Messages to insert before those of the task. */
  readonly messages?: readonly Message[] | undefined;
  /** Tools, in place of the task's. */
  readonly tools?: readonly Tool[] | undefined;
};

/** Progress of `distill`. */
export type DistillEvent = { readonly type: 'step'; readonly step: number; readonly metrics: MetricValues };

/** Options of `distill`. */
export type DistillOptions = Omit<
  Arguments['DistillOptions'],
  'service' | 'teacher' | 'tasks' | 'onEvent'
> & {
  readonly service: Service;
  readonly teacher: DistillTeacher;
  readonly tasks: readonly DistillTask[];
  /** Called at each event. */
  readonly onEvent?: ((event: DistillEvent) => void) | undefined;
};

/** The result of `distill`. */
export type DistillResult = {
  /** The registered model that was trained, which answers with its newest checkpoint. */
  readonly modelId: string;
  /** Model name of that checkpoint in requests. */
  readonly checkpoint: string;
  /** Metrics of each step. */
  readonly metrics: readonly MetricValues[];
};

/** An answer, with the prompts that student and teacher read before it. */
type Answer = {
  readonly task: DistillTask;
  readonly tokens: readonly number[];
  readonly texts: readonly string[];
  readonly logprobs: readonly number[]; // log-probabilities of the model that sampled it
};

/** A likely token at a position, by the teacher. */
type Likely = { readonly token: number; readonly logprob: number };

/** Fields of a request made from a task. */
type Asked = Pick<ChatCompletionRequest, 'messages' | 'tools' | 'model'>;

/** The student or the teacher: the requests to it, and the ids of its prompts. */
type Side = {
  readonly who: 'student' | 'teacher';
  readonly service: Completions;
  readonly model: { readonly model?: string };
  readonly toAsked: (task: DistillTask) => Asked;
  readonly prompts: Map<string, Promise<readonly number[]>>;
};

/**
 * Trains a student to answer as a teacher does. The teacher may be the same model with a longer prompt. On policy the student answers, and
 * each of its tokens is rewarded by the log-ratio of teacher and student, which minimizes the reverse KL divergence. Off policy the teacher
 * answers, and the student learns the teacher's distribution of each token, which minimizes the forward KL divergence.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options, or a teacher with another vocabulary; `UNSUPPORTED` if a service lacks a
 * needed method
 */
export async function distill(options: DistillOptions): Promise<DistillResult> {
  const settings = readOptions(options);
  const { service, onEvent, signal, tasks } = options;
  const { model, steps, batchSize, learningRate, onPolicy, seed, rank, topK } = settings;
  const { samples, maxTokens, temperature } = settings;
  const given = options.teacher;
  const student: Side = {
    who: 'student',
    service,
    model: { model },
    toAsked: (task) => ({ ...task, model }),
    prompts: new Map(),
  };
  const ofTeacher = given.model === undefined ? {} : { model: given.model };
  const teacher: Side = {
    who: 'teacher',
    service: given.service ?? service,
    model: ofTeacher,
    toAsked: ({ messages, tools }) => ({
      ...ofTeacher,
      messages: [...(given.messages ?? []), ...messages],
      tools: given.tools ?? tools,
    }),
    prompts: new Map(),
  };
  const taught = new Map<DistillTask, Promise<Answer[]>>();
  let isSameVocabulary = false;

  /** Returns each task once per pass, in a new random order each time. */
  function taskAt(place: number): DistillTask {
    const pass = Math.floor(place / tasks.length);
    return tasks[shuffled(tasks.length, seed, pass)[place % tasks.length]!]!;
  }

  async function answersTo(task: DistillTask, modelId: string, step: number): Promise<Answer[]> {
    if (onPolicy) return await sample(student, { ...task, model: modelId }, task, seedOf(seed, step));
    const answers = taught.get(task) ?? sample(teacher, teacher.toAsked(task), task, seedOf(seed, 0));
    taught.set(task, answers);
    return await answers;
  }

  async function sample({ service }: Side, asked: Asked, task: DistillTask, seed: number): Promise<Answer[]> {
    const { choices } = (await service.createCompletion(
      {
        ...asked,
        n: samples,
        max_tokens: maxTokens,
        temperature,
        seed,
        logprobs: true,
        return_token_ids: true,
        stream: false,
      },
      { signal },
    )) as ChatCompletion;
    return choices.map(({ token_ids, logprobs }) => {
      const content = logprobs?.content;
      if (!token_ids || !content)
        throw new OnpolicyError(
          'UNSUPPORTED',
          'the service does not give token ids and log-probabilities of its answers',
        );
      return {
        task,
        tokens: token_ids.slice(0, content.length),
        texts: content.map(({ token }) => token),
        logprobs: content.map(({ logprob }) => logprob),
      };
    });
  }

  /** Computes the training datum of an answer. `divergence`: the sum of its tokens' log-ratios, or of their negative log-probabilities. */
  async function learn(answer: Answer): Promise<{ datum: Datum | null; tokens: number; divergence: number }> {
    const { task, tokens } = answer;
    if (tokens.length === 0) return { datum: null, tokens: 0, divergence: 0 };
    const prompt = await promptIds(student, task);
    const needsTeacher = onPolicy || topK > 0;
    const likely = needsTeacher ? await scores(teacher, answer, onPolicy ? 0 : topK) : null;
    if (!isSameVocabulary && !onPolicy) await scores(student, answer, 0);
    isSameVocabulary = true;
    const input = { chunks: [{ tokens: [...prompt, ...tokens.slice(0, -1)] }] };
    const before = prompt.length - 1; // positions whose targets belong to the prompt
    const padded = (values: readonly number[], width = 1): number[] => [
      ...new Array<number>(before * width).fill(0),
      ...values,
    ];
    if (onPolicy) {
      const advantages = likely!.map(([own], i) => own!.logprob - answer.logprobs[i]!);
      const columns = {
        target_tokens: padded(tokens),
        logprobs: padded(answer.logprobs),
        advantages: padded(advantages),
        weights: padded(tokens.map(() => 1)),
      };
      const divergence = -advantages.reduce((sum, one) => sum + one, 0);
      return { datum: { model_input: input, loss_fn_inputs: columns }, tokens: tokens.length, divergence };
    }
    const targets = tokens.map((token, i) => likely?.[i] ?? [{ token, logprob: 0 }]);
    const width = Math.max(...targets.map((all) => all.length));
    const column = (rows: readonly (readonly number[])[]) =>
      padded(
        rows.flatMap((all) => [...all, ...new Array<number>(width - all.length).fill(0)]),
        width,
      );
    const shares = targets.map((all) => {
      const mass = all.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0);
      return all.map(({ logprob }) => Math.exp(logprob) / mass);
    });
    const columns = {
      target_tokens: column(targets.map((all) => all.map(({ token }) => token))),
      weights: column(shares),
    };
    const divergence = -answer.logprobs.reduce((sum, one) => sum + one, 0);
    return { datum: { model_input: input, loss_fn_inputs: columns }, tokens: tokens.length, divergence };
  }

  /** Returns the ids of a task's prompt, as the student or the teacher sees it. */
  function promptIds(
    { who, service, toAsked, prompts }: Side,
    task: DistillTask,
  ): Promise<readonly number[]> {
    const key = JSON.stringify(task);
    const ids =
      prompts.get(key) ??
      service
        .createCompletion(
          { ...toAsked(task), max_tokens: 1, return_token_ids: true, stream: false },
          { signal },
        )
        .then((answer) => {
          const { prompt_token_ids } = answer as ChatCompletion;
          if (prompt_token_ids) return prompt_token_ids;
          throw new OnpolicyError('UNSUPPORTED', `the ${who} does not give the token ids of its prompts`);
        });
    prompts.set(key, ids);
    return ids;
  }

  /** Returns, for each token of an answer, the token itself and the `more` likeliest ones with log-probabilities. */
  async function scores(side: Side, { task, tokens, texts }: Answer, more: number): Promise<Likely[][]> {
    const { who, service, model } = side;
    if (!service.createTextCompletion)
      throw new OnpolicyError('UNSUPPORTED', `the ${who} does not score prompts: it has no text completions`);
    const prompt = await promptIds(side, task);
    const { choices } = (await service.createTextCompletion(
      { ...model, prompt: [...prompt, ...tokens], max_tokens: 1, prompt_logprobs: more, stream: false },
      { signal },
    )) as TextCompletion;
    const places = choices[0]!.prompt_logprobs?.slice(prompt.length);
    if (!places)
      throw new OnpolicyError(
        'UNSUPPORTED',
        `the ${who} does not score prompts: it gives no prompt_logprobs`,
      );
    return tokens.map((token, i) => {
      const own = places[i]?.[token];
      if (!own || own.decoded_token !== texts[i])
        throw errorAt(
          'teacher',
          'INVALID_REQUEST',
          `expected the vocabulary of the student; token ${token} is ${JSON.stringify(own?.decoded_token ?? null)} for the ${who}, and ${JSON.stringify(texts[i])} for the other`,
        );
      const found = Object.entries(places[i]!).map(([id, { logprob }]) => ({ token: Number(id), logprob }));
      const rest = found.filter((one) => one.token !== token).sort((a, b) => b.logprob - a.logprob);
      return [{ token, logprob: own.logprob }, ...rest.slice(0, more)];
    });
  }

  async function log(modelId: string, answers: readonly Answer[], metrics: MetricValues): Promise<void> {
    const reward = -(metrics['distill/reverse_kl'] ?? metrics['distill/teacher_entropy'] ?? 0);
    const trajectories = answers.slice(0, 8).map(({ task, texts }) => ({
      messages_and_choices: [...task.messages, { role: 'assistant' as const, content: texts.join('') }],
      reward,
      metrics: { loss: metrics['loss/train'] },
    }));
    await service.models.log(modelId, {
      split: 'distill',
      trajectory_groups: [{ trajectories }],
    });
  }

  if (!service.openTraining) throw new OnpolicyError('UNSUPPORTED', 'the service has no training runs');
  const run = await service.openTraining({ model, rank }, { signal });
  const metrics: MetricValues[] = [];
  let checkpoint = run.modelId;
  try {
    for (let step = 0; step < steps; step++) {
      const batch = Array.from({ length: batchSize }, (_, i) => taskAt(step * batchSize + i));
      const answers = (await Promise.all(batch.map((task) => answersTo(task, run.modelId, step)))).flat();
      const learnt = await Promise.all(answers.map((answer) => learn(answer)));
      const data = learnt.flatMap(({ datum }) => (datum ? [datum] : []));
      if (data.length === 0)
        throw new OnpolicyError('INVALID_REQUEST', 'no answer has a token to learn from');
      const count = learnt.reduce((sum, { tokens }) => sum + tokens, 0);
      const loss = onPolicy
        ? { loss_fn: 'policy' as const, loss_fn_config: POLICY }
        : { loss_fn: 'cross_entropy' as const };
      const learned = await run.forwardBackward(
        onPolicy ? data : data.map((datum) => overTokens(datum, count)),
        loss,
        {
          signal,
        },
      );
      const stepped = await run.optimStep({ learning_rate: learningRate, grad_clip_norm: 1 }, { signal });
      if (onPolicy || step === steps - 1) checkpoint = await run.saveWeightsForSampler({ signal });
      const divergence = learnt.reduce((sum, { divergence }) => sum + divergence, 0) / count;
      const now = {
        ...stepped.metrics,
        'loss/train': learned.metrics!['loss:sum']!,
        ...(onPolicy ? { 'distill/reverse_kl': divergence } : { 'distill/teacher_entropy': divergence }),
        'data/step_trainable_tokens': count,
      };
      metrics.push(now);
      onEvent?.({ type: 'step', step: step + 1, metrics: now });
      await log(run.modelId, answers, now);
    }
  } finally {
    await service.trainingRuns?.delete(run.id).catch(() => {}); // its checkpoints stay
  }
  return { modelId: run.modelId, checkpoint, metrics };
}

/** Settings for a mean over the tokens of a step, with ratios clipped by default bounds. */
const POLICY = { experimental_config: { normalize_by_length: false } };

/** Divides the weights of cross-entropy by the number of tokens of a step. */
function overTokens({ model_input, loss_fn_inputs }: Datum, count: number): Datum {
  const weights = loss_fn_inputs.weights as readonly number[];
  return {
    model_input,
    loss_fn_inputs: { ...loss_fn_inputs, weights: weights.map((weight) => weight / count) },
  };
}

function readOptions(options: DistillOptions) {
  const checked = checkArguments('DistillOptions', options as Arguments['DistillOptions']);
  const { method, topK, temperature, ...settings } = withDefaults('DistillOptions', checked);
  const onPolicy = method === 'on_policy';
  if (onPolicy && topK > 0) throw wrongInput(['topK'], '0 with method on_policy', topK);
  return { ...settings, onPolicy, topK, temperature };
}
