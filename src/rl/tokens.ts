/** A trajectory -> token sequences: exactly the sampled ids, which of them are trained on, and their log-probabilities. */

import { NO_EXPERT } from '../engine/native/index.ts';
import { fromNative, OnpolicyError } from '../errors.ts';
import { checkArguments, type ExperimentalConfig, routedExpertIds } from '../protocol/index.ts';
import { areObserved, type ObservedSpan, observedSpans } from './observations.ts';
import {
  conversationsOf,
  idsFromLogprobs,
  isChoice,
  type MessagesAndChoices,
  type Trajectory,
  type TrajectoryChoice,
  type TrajectoryMessage,
} from './trajectory.ts';

/** Turns messages into ids with the model's template and tokenizer; tokenizes long texts on another thread. */
export interface ChatTokenizer {
  /** Returns the conversation up to where the assistant's next turn starts. */
  prompt(
    messages: readonly TrajectoryMessage[],
    tools: readonly unknown[] | null,
  ): Promise<readonly number[]>;
  /** Returns the whole conversation, with its last turn closed. */
  conversation(
    messages: readonly TrajectoryMessage[],
    tools: readonly unknown[] | null,
  ): Promise<readonly number[]>;
  /** Returns true if sampling this token ends a turn. */
  isEnd(token: number): boolean;
}

/** One sequence of tokens that a model saw or sampled. */
export type TokenSequence = {
  readonly tokens: Int32Array; // (sequence)
  readonly isTrained: Uint8Array; // (sequence)
  readonly logprobs: Float64Array; // (sequence) of trained tokens when they were sampled; NaN if unknown
  readonly temperatures?: Float32Array | undefined; // (sequence) at which trained tokens were sampled; absent: 1
  /** Experts that the tokens used, to be used again. Absent or null if the trainer chooses them. */
  readonly experts?: SequenceExperts | null | undefined;
  /** Weight of each token in the loss on observations; 0 for other tokens. Absent if there are no observations. */
  readonly observationWeights?: Float64Array | undefined; // (sequence)
};

/** Experts of each token in all layers. */
export type SequenceExperts = {
  readonly width: number;
  readonly ids: Int32Array; // (sequence, width) -1 if the trainer chooses
};

/** Settings of {@link trajectoryTokens}. */
export type TokenOptions = {
  /** Accepts choices without ids or log-probabilities: their text is tokenized, and counts as sampled by the current weights. */
  readonly allowWithoutLogprobs: boolean;
  /** True if tokens use the experts that they used when they were sampled. Default false. */
  readonly replaysExperts?: boolean | undefined;
  /** Temperature of sampled choices without `sampling_params.temperature`. Default 1. */
  readonly temperature?: number | undefined;
  /** Roles whose messages are observations if they follow a choice, and the weights of their tokens. Default: none. */
  readonly observationWeights?: NonNullable<ExperimentalConfig>['observation_weights'];
};

/** Returns the sequences of a trajectory: those of its own history first, then of its additional histories. */
export async function trajectoryTokens(
  trajectory: Trajectory,
  tokenizer: ChatTokenizer,
  options: TokenOptions,
): Promise<TokenSequence[]> {
  checkArguments('TokenArguments', { trajectory, tokenizer, options });
  return await tokensOf(trajectory, tokenizer, options);
}

/** Does the same for a trajectory of a checked request. */
export async function tokensOf(
  trajectory: Trajectory,
  tokenizer: ChatTokenizer,
  options: TokenOptions,
): Promise<TokenSequence[]> {
  const sequences: TokenSequence[] = [];
  for (const { entries, tools } of conversationsOf(trajectory))
    sequences.push(...(await historyTokens(entries, tools, tokenizer, options)));
  return sequences;
}

/** Returns an error about one conversation of a request, with the path of the conversation. */
export function located(error: unknown, path: string): OnpolicyError {
  const { code, message } = fromNative(error);
  return new OnpolicyError(code, `${path}: ${message}`, { cause: error, param: path });
}

/** Returns how many tokens of the sequences are trained on. */
export function countTrained(sequences: readonly TokenSequence[]): number {
  let count = 0;
  for (const { isTrained } of sequences) for (const flag of isTrained) count += flag;
  return count;
}

/** Tokens that a choice adds to its conversation. */
type Turn = {
  readonly prompt: readonly number[];
  readonly answer: readonly number[];
  readonly logprobs: Float64Array; // (answer) NaN if unknown
  readonly temperature: number;
  readonly experts: SequenceExperts | null; // of prompt and answer
};

/** A turn with what it saw of the environment. */
type ObservingTurn = Turn & { readonly observed: readonly ObservedSpan[] };

/** Turns in which each prompt exactly continues the turn before it. */
type Run = { readonly tokens: number[]; readonly turns: ObservingTurn[] };

/** Returns one sequence per run of turns. */
async function historyTokens(
  entries: MessagesAndChoices,
  tools: readonly unknown[] | null,
  tokenizer: ChatTokenizer,
  options: TokenOptions,
): Promise<TokenSequence[]> {
  const runs: Run[] = [];
  const context: TrajectoryMessage[] = [];
  const weights = options.observationWeights;
  const write = (messages: readonly TrajectoryMessage[]) => tokenizer.prompt(messages, tools);
  let since = Number.POSITIVE_INFINITY; // index of the first message after the last choice; what precedes the first one is the task
  for (const entry of entries) {
    if (isChoice(entry)) {
      const turn = await readTurn(entry, context, tools, tokenizer, options);
      const prompt = {
        messages: context,
        since,
        tokens: turn.prompt,
        isWritten: !entry.prompt_token_ids,
        write,
      };
      const observed = areObserved(weights) ? await observedSpans(prompt, weights) : [];
      addTurn(runs, { ...turn, observed });
      since = context.length + 1;
    }
    context.push(isChoice(entry) ? entry.message : entry);
  }
  return runs.map(toSequence);
}

/** Adds a turn. If its prompt continues the last run, only the new tokens are added, so that each token is kept once. */
function addTurn(runs: Run[], turn: ObservingTurn): void {
  const last = runs.at(-1);
  const run = last && startsWith(turn.prompt, last.tokens) ? last : { tokens: [], turns: [] };
  if (run !== last) runs.push(run);
  const { tokens } = run;
  for (let i = tokens.length; i < turn.prompt.length; i++) tokens.push(turn.prompt[i]!);
  for (const id of turn.answer) tokens.push(id);
  run.turns.push(turn);
}

async function readTurn(
  choice: TrajectoryChoice,
  context: readonly TrajectoryMessage[],
  tools: readonly unknown[] | null,
  tokenizer: ChatTokenizer,
  options: TokenOptions,
): Promise<Turn> {
  const content = choice.logprobs?.content ?? null;
  if (!content && !options.allowWithoutLogprobs)
    throw new OnpolicyError(
      'INVALID_REQUEST',
      'a choice has no logprobs: request completions with "logprobs": true, or set allow_training_without_logprobs',
    );
  const sampled = choice.token_ids ?? idsFromLogprobs(content);
  if (!sampled && !options.allowWithoutLogprobs)
    throw new OnpolicyError(
      'INVALID_REQUEST',
      'a choice has no token ids: request completions with "return_token_ids": true, or set allow_training_without_logprobs',
    );
  const given = choice.prompt_token_ids ?? null;
  const prompt = given && sampled ? given : await tokenizer.prompt(context, tools);
  const answer =
    sampled ?? answerIn(await tokenizer.conversation([...context, choice.message], tools), prompt, tokenizer);
  const logprobs = new Float64Array(answer.length).fill(Number.NaN);
  if (sampled && content) {
    if (content.length > answer.length)
      throw new OnpolicyError(
        'INVALID_REQUEST',
        `a choice has ${answer.length} token ids but log-probabilities of ${content.length} tokens`,
      );
    for (let i = 0; i < content.length; i++) logprobs[i] = content[i]!.logprob ?? Number.NaN;
  }
  const experts = options.replaysExperts && sampled ? expertsOf(choice, prompt.length + answer.length) : null;
  const temperature = sampled ? temperatureOf(choice, options) : 1;
  return { prompt: given ?? prompt, answer, logprobs, temperature, experts };
}

/** Returns the temperature of a choice. A greedy choice is trained as if sampled at 1, because at 0 there is no distribution. */
function temperatureOf({ sampling_params }: TrajectoryChoice, { temperature }: TokenOptions): number {
  return (sampling_params?.temperature ?? temperature ?? 1) || 1;
}

/** Returns the experts of a prompt and its answer. */
function expertsOf({ routed_experts: given }: TrajectoryChoice, tokens: number): SequenceExperts | null {
  if (!given) return null;
  const width = given.layers * given.used;
  const ids = Int32Array.from(routedExpertIds(given), (id) => (id === NO_EXPERT ? -1 : id));
  if (ids.length !== tokens * width)
    throw new OnpolicyError(
      'INVALID_REQUEST',
      `a choice has routed_experts of ${ids.length / width} tokens, but a prompt and an answer of ${tokens}: keep the prompt_token_ids of its response`,
    );
  return { width, ids };
}

/** Returns the last turn of a conversation: the tokens after the prompt, up to and including the token that ends the turn. */
function answerIn(
  whole: readonly number[],
  prompt: readonly number[],
  tokenizer: ChatTokenizer,
): readonly number[] {
  if (!startsWith(whole, prompt))
    throw new OnpolicyError(
      'UNSUPPORTED',
      'the template writes an answered conversation differently from its prompt, so an answer without token ids cannot be trained on',
    );
  const rest = whole.slice(prompt.length);
  const end = rest.findLastIndex((token) => tokenizer.isEnd(token));
  return end < 0 ? rest : rest.slice(0, end + 1);
}

/** Marks each turn's answer as trained. */
function toSequence({ tokens, turns }: Run): TokenSequence {
  const isTrained = new Uint8Array(tokens.length);
  const logprobs = new Float64Array(tokens.length).fill(Number.NaN);
  const temperatures = turns.some(({ temperature }) => temperature !== 1)
    ? new Float32Array(tokens.length).fill(1)
    : undefined;
  for (const { prompt, answer, logprobs: known, temperature } of turns) {
    isTrained.fill(1, prompt.length, prompt.length + answer.length);
    logprobs.set(known, prompt.length);
    temperatures?.fill(temperature, prompt.length, prompt.length + answer.length);
  }
  isTrained[0] = 0; // there is no token before it to predict it
  const experts = joinExperts(turns, tokens.length);
  const observationWeights = joinObserved(turns, tokens.length);
  return { tokens: Int32Array.from(tokens), isTrained, logprobs, temperatures, experts, observationWeights };
}

/** Joins the observations of turns. What a turn observes comes after the answer of the turn before it. */
function joinObserved(turns: readonly ObservingTurn[], length: number): Float64Array | undefined {
  if (turns.every(({ observed }) => observed.length === 0)) return undefined;
  const weights = new Float64Array(length);
  let end = 1; // there is no token before the first one to predict it
  for (const { prompt, answer, observed } of turns) {
    for (const { from, to, weight } of observed) weights.fill(weight, Math.max(from, end), Math.max(to, end));
    end = prompt.length + answer.length;
  }
  return weights;
}

/** Joins the experts of turns. Each token gets those of the first turn that has them, because a later one may have read it from a cache. */
function joinExperts(turns: readonly Turn[], length: number): SequenceExperts | null {
  const width = turns.flatMap(({ experts }) => experts?.width ?? [])[0];
  if (width === undefined) return null;
  const ids = new Int32Array(length * width).fill(-1);
  for (const { experts } of turns)
    for (const [i, id] of experts?.ids.entries() ?? []) if (ids[i] === -1) ids[i] = id;
  return { width, ids };
}

function startsWith(ids: readonly number[], start: readonly number[]): boolean {
  if (ids.length < start.length) return false;
  for (let i = 0; i < start.length; i++) if (ids[i] !== start[i]) return false;
  return true;
}
