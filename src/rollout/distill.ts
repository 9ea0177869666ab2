/** A student, a teacher and conversations to continue -> a student that answers as the teacher does, step by step of a training run. */
import { seedOf, shuffled } from '../common/index.ts';
import { errorAt, OnpolicyError } from '../errors.ts';
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
} from '../protocol/index.ts';
import type { Completions, Service } from '../service.ts';
import { wrongInput } from './wrong-input.ts';

/** A conversation whose next turn is learned. */
export type DistillTask = {
  readonly messages: readonly Message[];
  readonly tools?: readonly Tool[] | null | undefined;
};

/** Who is learned from. */
export type DistillTeacher = {
  /** Default: the student's service. */
  readonly service?: Completions | undefined;
  /** Its model there. Default: the base model of the student's service. */
  readonly model?: string | undefined;
  /** Messages that stand before those of the task. */
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
  /** What requests call that checkpoint. */
  readonly checkpoint: string;
  /** Of each step. */
  readonly metrics: readonly MetricValues[];
};

/**
 * Trains a student to answer as a teacher does, which may be the same model with more in its prompt. On policy the student answers, and
 * each of its tokens is rewarded by how much likelier the teacher finds it: the reverse KL divergence falls. Off policy the teacher answers,
 * and the student learns its distribution of each token: the forward KL divergence falls.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options, or a teacher with another vocabulary; `UNSUPPORTED` where something is missing
 */
export async function distill(options: DistillOptions): Promise<DistillResult> {
  return await new Distillation(options).run();
}

/** An answer, with what was read before it by each of both. */
type Answer = {
  readonly task: DistillTask;
  readonly tokens: readonly number[];
  readonly texts: readonly string[];
  readonly logprobs: readonly number[]; // of whoever sampled it
};

/** A token that the teacher finds likely at a place. */
type Likely = { readonly token: number; readonly logprob: number };

class Distillation {
  readonly #options: DistillOptions;
  readonly #settings: ReturnType<typeof readOptions>;
  readonly #prompts = new Map<string, Promise<readonly number[]>>();
  readonly #taught = new Map<DistillTask, Promise<Answer[]>>();
  #isSameVocabulary = false;

  constructor(options: DistillOptions) {
    this.#options = options;
    this.#settings = readOptions(options);
  }

  async run(): Promise<DistillResult> {
    const { service, onEvent, signal, tasks } = this.#options;
    const { model, steps, batchSize, learningRate, onPolicy, seed, rank } = this.#settings;
    if (!service.openTraining) throw new OnpolicyError('UNSUPPORTED', 'the service has no training runs');
    const run = await service.openTraining({ model, rank }, { signal });
    const metrics: MetricValues[] = [];
    let checkpoint = run.modelId;
    try {
      for (let step = 0; step < steps; step++) {
        const batch = Array.from({ length: batchSize }, (_, i) =>
          this.#taskAt(tasks, step * batchSize + i, seed),
        );
        const answers = (
          await Promise.all(batch.map((task) => this.#answers(task, run.modelId, step)))
        ).flat();
        const taught = await Promise.all(answers.map((answer) => this.#learn(answer)));
        const data = taught.flatMap(({ datum }) => (datum ? [datum] : []));
        if (data.length === 0)
          throw new OnpolicyError('INVALID_REQUEST', 'no answer has a token to learn from');
        const count = taught.reduce((sum, { tokens }) => sum + tokens, 0);
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
        const divergence = taught.reduce((sum, { divergence }) => sum + divergence, 0) / count;
        const now = {
          ...stepped.metrics,
          'loss/train': learned.metrics!['loss:sum']!,
          ...(onPolicy ? { 'distill/reverse_kl': divergence } : { 'distill/teacher_entropy': divergence }),
          'data/step_trainable_tokens': count,
        };
        metrics.push(now);
        onEvent?.({ type: 'step', step: step + 1, metrics: now });
        await this.#log(run.modelId, answers, now);
      }
    } finally {
      await service.trainingRuns?.delete(run.id).catch(() => {}); // its checkpoints stay
    }
    return { modelId: run.modelId, checkpoint, metrics };
  }

  /** Each task once in each pass, in an order of its own. */
  #taskAt(tasks: readonly DistillTask[], place: number, seed: number | string): DistillTask {
    const pass = Math.floor(place / tasks.length);
    return tasks[shuffled(tasks.length, seed, pass)[place % tasks.length]!]!;
  }

  async #answers(task: DistillTask, student: string, step: number): Promise<Answer[]> {
    const { service } = this.#options;
    if (this.#settings.onPolicy)
      return await this.#sample(
        service,
        { ...task, model: student },
        task,
        seedOf(this.#settings.seed, step),
      );
    const known = this.#taught.get(task);
    if (known) return await known;
    const answers = this.#sample(this.#teacher, this.#taughtTask(task), task, seedOf(this.#settings.seed, 0));
    this.#taught.set(task, answers);
    return await answers;
  }

  get #teacher(): Completions {
    return this.#options.teacher.service ?? this.#options.service;
  }

  /** The task as the teacher sees it. */
  #taughtTask({ messages, tools }: DistillTask): Pick<ChatCompletionRequest, 'messages' | 'tools' | 'model'> {
    const { teacher } = this.#options;
    return {
      ...(teacher.model === undefined ? {} : { model: teacher.model }),
      messages: [...(teacher.messages ?? []), ...messages],
      tools: teacher.tools ?? tools,
    };
  }

  async #sample(
    service: Completions,
    asked: Pick<ChatCompletionRequest, 'messages' | 'tools' | 'model'>,
    task: DistillTask,
    seed: number,
  ): Promise<Answer[]> {
    const { samples, maxTokens, temperature } = this.#settings;
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
      { signal: this.#options.signal },
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

  /** What is learned of an answer. `divergence`: the sum of its tokens' log-ratios, or of minus their log-probabilities. */
  async #learn(answer: Answer): Promise<{ datum: Datum | null; tokens: number; divergence: number }> {
    const { onPolicy, topK } = this.#settings;
    const { task, tokens } = answer;
    if (tokens.length === 0) return { datum: null, tokens: 0, divergence: 0 };
    const student = await this.#prompt('student', task);
    const needsTeacher = onPolicy || topK > 0;
    const likely = needsTeacher ? await this.#scores('teacher', answer, onPolicy ? 0 : topK) : null;
    if (!this.#isSameVocabulary && !onPolicy) await this.#scores('student', answer, 0);
    this.#isSameVocabulary = true;
    const input = { chunks: [{ tokens: [...student, ...tokens.slice(0, -1)] }] };
    const before = student.length - 1; // positions that predict the prompt
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
        weights: [...new Array<number>(before).fill(0), ...tokens.map(() => 1)],
      };
      const divergence = -advantages.reduce((sum, one) => sum + one, 0);
      return { datum: { model_input: input, loss_fn_inputs: columns }, tokens: tokens.length, divergence };
    }
    const width = likely?.reduce((most, all) => Math.max(most, all.length), 0) ?? 1;
    const targets = tokens.map((token, i) => likely?.[i] ?? [{ token, logprob: 0 }]);
    const shares = targets.map((all) => {
      const mass = all.reduce((sum, { logprob }) => sum + Math.exp(logprob), 0);
      return all.map(({ logprob }) => Math.exp(logprob) / mass);
    });
    const column = <T>(rows: readonly (readonly T[])[], filler: T) =>
      rows.flatMap((all) => [...all, ...new Array<T>(width - all.length).fill(filler)]);
    const columns = {
      target_tokens: padded(
        column(
          targets.map((all) => all.map(({ token }) => token)),
          0,
        ),
        width,
      ),
      weights: padded(column(shares, 0), width),
    };
    const divergence = -answer.logprobs.reduce((sum, one) => sum + one, 0);
    return { datum: { model_input: input, loss_fn_inputs: columns }, tokens: tokens.length, divergence };
  }

  /** The ids of a task's prompt, as the student or the teacher sees it. */
  #prompt(who: 'student' | 'teacher', task: DistillTask): Promise<readonly number[]> {
    const key = `${who} ${JSON.stringify(task)}`;
    const known = this.#prompts.get(key);
    if (known) return known;
    const asked = who === 'student' ? { ...task, model: this.#settings.model } : this.#taughtTask(task);
    const service = who === 'student' ? this.#options.service : this.#teacher;
    const ids = service
      .createCompletion(
        { ...asked, max_tokens: 1, return_token_ids: true, stream: false },
        { signal: this.#options.signal },
      )
      .then((answer) => {
        const { prompt_token_ids } = answer as ChatCompletion;
        if (prompt_token_ids) return prompt_token_ids;
        throw new OnpolicyError('UNSUPPORTED', `the ${who} does not give the token ids of its prompts`);
      });
    this.#prompts.set(key, ids);
    return ids;
  }

  /** For each token of an answer: itself and the `more` likeliest ones, by its log-probability. */
  async #scores(
    who: 'student' | 'teacher',
    { task, tokens, texts }: Answer,
    more: number,
  ): Promise<Likely[][]> {
    const service = who === 'student' ? this.#options.service : this.#teacher;
    if (!service.createTextCompletion)
      throw new OnpolicyError('UNSUPPORTED', `the ${who} does not score prompts: it has no text completions`);
    const prompt = await this.#prompt(who, task);
    const model = who === 'student' ? this.#settings.model : this.#options.teacher.model;
    const { choices } = (await service.createTextCompletion(
      {
        ...(model === undefined ? {} : { model }),
        prompt: [...prompt, ...tokens],
        max_tokens: 1,
        prompt_logprobs: more,
        stream: false,
      },
      { signal: this.#options.signal },
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

  async #log(modelId: string, answers: readonly Answer[], metrics: MetricValues): Promise<void> {
    const reward = -(metrics['distill/reverse_kl'] ?? metrics['distill/teacher_entropy'] ?? 0);
    const trajectories = answers.slice(0, 8).map(({ task, texts }) => ({
      messages_and_choices: [...task.messages, { role: 'assistant' as const, content: texts.join('') }],
      reward,
      metrics: { loss: metrics['loss/train'] },
    }));
    await this.#options.service.models.log(modelId, {
      split: 'distill',
      trajectory_groups: [{ trajectories }],
    });
  }
}

/** A mean over the tokens of a step, with ratios clipped as by default. */
const POLICY = { experimental_config: { normalize_by_length: false } };

/** Weights of cross-entropy over the tokens of a step. */
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
