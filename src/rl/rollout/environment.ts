/** An environment behind HTTP -> a rollout that plays it: observations become messages, and answers become actions. */
import { describe } from '../../common/index.ts';
import { errorAt, failIfAborted, messageOf, OnpolicyError } from '../../errors.ts';
import {
  type Arguments,
  type ChatCompletion,
  type ChatCompletionRequest,
  checkArguments,
  type Message,
  withDefaults,
} from '../../protocol/index.ts';
import type { Completions } from '../../protocol/service/index.ts';
import type { Rollout, RolloutContext } from './gather.ts';
import { record } from './recorder.ts';

/** An observation that an environment returns. */
export type Observation = Readonly<Record<string, unknown>>;

/** Options of `environmentRollout`. */
export type EnvironmentOptions<Task> = Omit<
  Arguments['EnvironmentOptions'],
  'service' | 'toReset' | 'toMessage' | 'toAction' | 'request' | 'fetch'
> & {
  readonly service: Completions;
  /** Returns the body of `/reset` for a task. Default: the seed of the attempt. */
  readonly toReset?: ((task: Task, context: RolloutContext) => object) | undefined;
  /** Returns the text of an observation for the model. */
  readonly toMessage: (observation: Observation, task: Task) => string;
  /** Converts an answer to an action. */
  readonly toAction: (answer: string) => object;
  /** Additional fields of the requests, such as `max_tokens`. */
  readonly request?: Partial<ChatCompletionRequest> | undefined;
  readonly fetch?: typeof globalThis.fetch | undefined;
};

/** Answer of `/reset` and `/step`. */
type Shown = { readonly observation: Observation; readonly reward: number; readonly isDone: boolean };

/**
 * Plays environments of OpenEnv's protocol (`POST /reset`, `POST /step`) in `gatherTrajectoryGroups` and `trainLoop`. A server plays one
 * attempt at a time; further attempts wait for a free one. The reward is the sum of all rewards.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options
 */
export function environmentRollout<Task>(
  options: EnvironmentOptions<Task>,
): Rollout<Task, RolloutContext & { readonly model?: string }> {
  const checked = checkArguments('EnvironmentOptions', options as Arguments['EnvironmentOptions']);
  const { baseUrls, maxTurns, timeoutMs } = withDefaults('EnvironmentOptions', checked);
  const { service, toReset, toMessage, toAction, request, fetch = globalThis.fetch } = options;
  const free = [...baseUrls];
  const waiting: ((url: string) => void)[] = [];

  /** Calls an environment once. It may hang or return anything. */
  async function ask(at: string, body: object, signal: AbortSignal): Promise<Shown> {
    try {
      const response = await fetch(at, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
        signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]),
      });
      if (!response.ok) throw new Error(`status ${response.status}`);
      return toShown(at, await response.json());
    } catch (cause) {
      failIfAborted(signal, 'the attempt');
      if (cause instanceof OnpolicyError) throw cause;
      throw new OnpolicyError('NETWORK_FAILED', `the environment ${at} failed: ${messageOf(cause)}`, {
        cause,
      });
    }
  }

  async function play(url: string, task: Task, context: RolloutContext & { readonly model?: string }) {
    const { signal, seed } = context;
    signal.throwIfAborted();
    const call = (path: 'reset' | 'step', body: object) =>
      ask(`${url.replace(/\/$/, '')}/${path}`, body, signal);
    const recorder = record(service, { model: context.model ?? options.model, seed });
    const messages: Message[] = [];
    let shown = await call('reset', toReset?.(task, context) ?? { seed });
    let reward = shown.reward;
    let turns = 0;
    for (; turns < maxTurns && !shown.isDone; turns++) {
      messages.push({ role: 'user', content: toMessage(shown.observation, task) });
      const asked = {
        ...request,
        messages: [...messages],
        logprobs: true,
        return_token_ids: true,
        stream: false as const,
      };
      const { choices } = (await recorder.service.createCompletion(asked, { signal })) as ChatCompletion;
      const content = choices[0]!.message.content ?? '';
      messages.push({ role: 'assistant', content });
      shown = await call('step', { action: toAction(content) });
      reward += shown.reward;
    }
    return recorder.finish({ reward, metrics: { turns, is_done: shown.isDone } });
  }

  return async (task, context) => {
    const url = free.pop() ?? (await new Promise<string>((resolve) => waiting.push(resolve)));
    try {
      return await play(url, task, context);
    } finally {
      const next = waiting.shift();
      if (next) next(url);
      else free.push(url);
    }
  };
}

/** Parses an environment's answer. @throws OnpolicyError `NETWORK_FAILED` for an answer in another form */
function toShown(at: string, answer: unknown): Shown {
  const { observation, reward = null, done = false } = (answer ?? {}) as Record<string, unknown>;
  const wrong = (field: string, expected: string, got: unknown) =>
    errorAt(field, 'NETWORK_FAILED', `expected ${expected} of the environment ${at}, got ${describe(got)}`);
  if (typeof observation !== 'object' || observation === null)
    throw wrong('observation', 'an object', observation);
  if (reward !== null && !Number.isFinite(reward)) throw wrong('reward', 'a finite number or null', reward);
  if (typeof done !== 'boolean') throw wrong('done', 'true or false', done);
  return { observation: observation as Observation, reward: (reward as number | null) ?? 0, isDone: done };
}
