/** A trajectory -> token sequences: exactly the ids that were sampled, which of them are trained on, and how likely they were. */
import { OnpolicyError } from '../errors.ts';
import { checkArguments } from '../protocol/index.ts';
import {
  type History,
  isChoice,
  type MessagesAndChoices,
  type Trajectory,
  type TrajectoryChoice,
  type TrajectoryMessage,
} from './trajectory.ts';

/** Turns messages into ids with the model's template and tokenizer; long texts on another thread. */
export interface ChatTokenizer {
  /** The conversation up to where the assistant's next turn starts. */
  prompt(
    messages: readonly TrajectoryMessage[],
    tools: readonly unknown[] | null,
  ): Promise<readonly number[]>;
  /** The whole conversation, its last turn closed. */
  conversation(
    messages: readonly TrajectoryMessage[],
    tools: readonly unknown[] | null,
  ): Promise<readonly number[]>;
  /** Whether sampling this token ends a turn. */
  isEnd(token: number): boolean;
}

/** One line of tokens that a model saw or sampled. */
export type TokenSequence = {
  readonly tokens: Int32Array; // (sequence)
  readonly isTrained: Uint8Array; // (sequence)
  readonly logprobs: Float64Array; // (sequence) of trained tokens when they were sampled; NaN: unknown
};

/** Settings of {@link trajectoryTokens}. */
export type TokenOptions = {
  /** Accepts choices without ids or log-probabilities: their text is tokenized, and counts as sampled by the current weights. */
  readonly allowWithoutLogprobs: boolean;
};

/** The sequences of a trajectory: its own history's first, then those of its additional histories. */
export async function trajectoryTokens(
  trajectory: Trajectory,
  tokenizer: ChatTokenizer,
  options: TokenOptions,
): Promise<TokenSequence[]> {
  checkArguments('TokenArguments', { trajectory, tokenizer, options });
  return await tokensOf(trajectory, tokenizer, options);
}

/** The same for a trajectory of a checked request. */
export async function tokensOf(
  trajectory: Trajectory,
  tokenizer: ChatTokenizer,
  options: TokenOptions,
): Promise<TokenSequence[]> {
  const tools = trajectory.tools ?? null;
  const histories: History[] = [trajectory.messages_and_choices, ...(trajectory.additional_histories ?? [])];
  const sequences: TokenSequence[] = [];
  for (const history of histories) {
    const { messages_and_choices, tools: own } =
      'messages_and_choices' in history ? history : { messages_and_choices: history, tools: undefined };
    sequences.push(...(await historyTokens(messages_and_choices, own ?? tools, tokenizer, options)));
  }
  return sequences;
}

/** How many tokens of the sequences are trained on. */
export function countTrained(sequences: readonly TokenSequence[]): number {
  let count = 0;
  for (const { isTrained } of sequences) for (const flag of isTrained) count += flag;
  return count;
}

/** The ids of the last turn of a conversation: what follows the prompt, up to and with the token that ends the turn. */
async function answerTokens(
  tokenizer: ChatTokenizer,
  context: readonly TrajectoryMessage[],
  answer: TrajectoryMessage,
  tools: readonly unknown[] | null,
): Promise<readonly number[]> {
  const prompt = await tokenizer.prompt(context, tools);
  const whole = await tokenizer.conversation([...context, answer], tools);
  if (!startsWith(whole, prompt))
    throw new OnpolicyError(
      'UNSUPPORTED',
      'the template writes an answered conversation differently from its prompt, so an answer without token ids cannot be trained on',
    );
  const rest = whole.slice(prompt.length);
  const end = rest.findLastIndex((token) => tokenizer.isEnd(token));
  return end < 0 ? rest : rest.slice(0, end + 1);
}

type Turn = {
  readonly prompt: readonly number[];
  readonly answer: readonly number[];
  readonly logprobs: readonly number[]; // (answer)
};

/** One sequence per run of turns in which each prompt continues the turn before it exactly. */
async function historyTokens(
  entries: MessagesAndChoices,
  tools: readonly unknown[] | null,
  tokenizer: ChatTokenizer,
  options: TokenOptions,
): Promise<TokenSequence[]> {
  const runs: Turn[][] = [];
  const context: TrajectoryMessage[] = [];
  for (const entry of entries) {
    if (!isChoice(entry)) {
      context.push(entry);
      continue;
    }
    const turn = await readTurn(entry, context, tools, tokenizer, options);
    const run = runs.at(-1);
    const last = run?.at(-1);
    if (run && last && startsWith(turn.prompt, [...last.prompt, ...last.answer])) run.push(turn);
    else runs.push([turn]);
    context.push(entry.message);
  }
  return runs.map(joinTurns);
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
  const answer = sampled ?? (await answerTokens(tokenizer, context, choice.message, tools));
  const known = sampled && content ? content.map(({ logprob }) => logprob ?? Number.NaN) : [];
  if (known.length > answer.length)
    throw new OnpolicyError(
      'INVALID_REQUEST',
      `a choice has ${answer.length} token ids but log-probabilities of ${known.length} tokens`,
    );
  return {
    prompt: choice.prompt_token_ids ?? (await tokenizer.prompt(context, tools)),
    answer,
    logprobs: answer.map((_, i) => known[i] ?? Number.NaN),
  };
}

/** Ids out of tokens written as `token_id:N`; null when any is written as text. */
function idsFromLogprobs(
  content: readonly { readonly token?: string | undefined }[] | null,
): number[] | null {
  const ids = content?.map(({ token }) => Number(/^token_id:(\d+)$/.exec(token ?? '')?.[1] ?? Number.NaN));
  return ids?.every(Number.isInteger) ? ids : null;
}

/** The last turn's ids contain all earlier turns; each turn's answer is trained on at its place there. */
function joinTurns(turns: readonly Turn[]): TokenSequence {
  const last = turns.at(-1)!;
  const tokens = Int32Array.from([...last.prompt, ...last.answer]);
  const isTrained = new Uint8Array(tokens.length);
  const logprobs = new Float64Array(tokens.length).fill(Number.NaN);
  for (const { prompt, answer, logprobs: known } of turns) {
    isTrained.fill(1, prompt.length, prompt.length + answer.length);
    logprobs.set(known, prompt.length);
  }
  isTrained[0] = 0; // nothing predicts the first token
  return { tokens, isTrained, logprobs };
}

function startsWith(ids: readonly number[], start: readonly number[]): boolean {
  return ids.length >= start.length && start.every((id, i) => ids[i] === id);
}
