/** Messages that follow a choice, and weights of roles -> which tokens of the next prompt are learned as observations. */
import { OnpolicyError } from '../errors.ts';
import type { ExperimentalConfig } from '../protocol/index.ts';
import type { TrajectoryMessage } from './trajectory.ts';

/** Weight of the loss on observation tokens, by the role of their message. */
type ObservationWeights = NonNullable<NonNullable<ExperimentalConfig>['observation_weights']>;

/** Tokens `from` to `to` of a prompt that are the text of an observation. */
export type ObservedSpan = { readonly from: number; readonly to: number; readonly weight: number };

/** Prompt of a choice that is not the first of its conversation. */
type LaterPrompt = {
  /** The conversation up to the choice. */
  readonly messages: readonly TrajectoryMessage[];
  /** Index of the first message after the choice before it. */
  readonly since: number;
  readonly tokens: readonly number[];
  /** False if the tokens were made elsewhere, possibly with other settings of the template. */
  readonly isWritten: boolean;
  /** Writes a conversation as a prompt. */
  readonly write: (messages: readonly TrajectoryMessage[]) => Promise<readonly number[]>;
};

/** Returns true if some role has a weight. */
export function areObserved(weights: ObservationWeights | null | undefined): weights is ObservationWeights {
  return Object.values(weights ?? {}).some((weight) => (weight ?? 0) > 0);
}

/**
 * Finds the texts of the new messages in a prompt: the tokens that change if the text of one message is replaced. The template's own
 * tokens around a text stay the same, so they are not part of it.
 */
export async function observedSpans(
  { messages, since, tokens, isWritten, write }: LaterPrompt,
  weights: ObservationWeights,
): Promise<ObservedSpan[]> {
  const observed = messages.flatMap((message, i) => {
    const weight = i < since ? 0 : weightOf(message, weights);
    return weight > 0 ? [{ message, i, weight }] : [];
  });
  if (observed.length === 0) return [];
  const written = isWritten ? tokens : await write(messages);
  const spans: ObservedSpan[] = [];
  for (const { message, i, weight } of observed) {
    const changed = messages.with(i, { ...message, content: otherText(message.content) });
    const span = difference(written, await write(changed));
    if (span.from < span.to) spans.push({ ...span, weight });
  }
  return isWritten || spans.length === 0 ? spans : moved(spans, written, tokens);
}

function weightOf({ role, content }: TrajectoryMessage, weights: ObservationWeights): number {
  return textOf(content) !== '' && Object.hasOwn(weights, role)
    ? (weights[role as keyof ObservationWeights] ?? 0)
    : 0;
}

/** Returns a letter that the text neither begins nor ends with, so that its first and its last token change. */
function otherText(content: unknown): string {
  const text = textOf(content).trim();
  return ['x', 'y', 'z'].find((letter) => letter !== text[0] && letter !== text.at(-1))!;
}

function textOf(content: unknown): string {
  const parts: readonly { readonly text?: unknown }[] = Array.isArray(content)
    ? content
    : [{ text: content }];
  return parts.map(({ text }) => String(text ?? '')).join('');
}

/** Returns the tokens of `written` between what both have in common at the beginning and at the end. */
function difference(written: readonly number[], changed: readonly number[]): { from: number; to: number } {
  const shorter = Math.min(written.length, changed.length);
  let from = 0;
  while (from < shorter && written[from] === changed[from]) from++;
  let same = 0; // at the end
  while (same < shorter - from && written.at(-1 - same) === changed.at(-1 - same)) same++;
  return { from, to: written.length - same };
}

/**
 * Finds the same tokens in a prompt that was made elsewhere. Of several places, takes the last of those with the most equal tokens before it.
 */
function moved(
  spans: readonly ObservedSpan[],
  written: readonly number[],
  tokens: readonly number[],
): ObservedSpan[] {
  const from = spans[0]!.from;
  const to = spans.at(-1)!.to;
  const same = commonLengths(written.slice(from, to), tokens);
  const before = commonLengths(written.slice(0, from).reverse(), tokens.toReversed());
  let best = { shift: 0, length: -1 };
  for (let at = tokens.length - (to - from); at >= 0; at--) {
    if (same[at]! < to - from) continue;
    const length = before[tokens.length - at] ?? 0;
    if (length > best.length) best = { shift: at - from, length };
  }
  if (best.length < 0)
    throw new OnpolicyError(
      'INVALID_REQUEST',
      'observation_weights: the prompt_token_ids of a choice do not have the messages before it as the template writes them',
    );
  return spans.map((span) => ({ ...span, from: span.from + best.shift, to: span.to + best.shift }));
}

/** Returns for each place of `list` how many of the first items of `start` stand there: the Z function, in linear time. */
function commonLengths(start: readonly number[], list: readonly number[]): Int32Array {
  const all = [...start, Number.NaN, ...list]; // NaN equals nothing
  const lengths = new Int32Array(all.length);
  let [left, right] = [0, 0]; // the known match that ends last
  for (let i = 1; i < all.length; i++) {
    let length = i < right ? Math.min(right - i, lengths[i - left]!) : 0;
    while (i + length < all.length && all[length] === all[i + length]) length++;
    lengths[i] = length;
    if (i + length > right) [left, right] = [i, i + length];
  }
  return lengths.subarray(start.length + 1);
}
