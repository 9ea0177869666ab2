/** More text than fits into the context -> `CONTEXT_OVERFLOW`, before all of it is rendered or encoded. */

import type { Tokenizer } from '../engine/tokenizer/index.ts';
import { contextOverflow, failIfAborted, OnpolicyError } from '../errors.ts';
import type { ValidChatRequest } from '../protocol/index.ts';
import { contentText } from './template-message.ts';

/** Number of characters encoded at a time. */
const PIECE = 2 ** 20;

/** Number of additional tokens, per piece, that encoding in pieces may produce. */
const SLACK = 64;

/** Limits that a text must fit into. */
export type Room = {
  readonly tokenizer: Tokenizer;
  readonly contextSize: number;
  /** Aborts the counting between two pieces. */
  readonly signal?: AbortSignal | undefined;
};

/** Throws `CONTEXT_OVERFLOW`, naming `field`, if a text certainly does not fit. Throws the signal's error if it is aborted. */
export async function requireRoomFor(text: string, field: string, room: Room): Promise<void> {
  if (text.length <= PIECE) return;
  const tokens = await tokensBeyond(text, room);
  if (tokens !== null) throw tooLong(field, tokens, room);
}

/**
 * Returns the error for a failed template: `CONTEXT_OVERFLOW` if the text exceeded the template's budget and alone does not fit the
 * context, else `error` itself.
 */
export async function hugePromptError(
  error: unknown,
  { messages }: ValidChatRequest,
  room: Room,
): Promise<unknown> {
  if (!(error instanceof OnpolicyError) || error.detail?.[0]?.type !== 'Budget') return error;
  const tokens = await tokensBeyond(messages.map(contentText).join('\n'), room);
  return tokens === null ? error : tooLong('messages', tokens, room);
}

/** Returns the number of tokens of a text, estimated from the part that already exceeds the context. Returns null if the text may fit. */
async function tokensBeyond(text: string, { tokenizer, contextSize, signal }: Room): Promise<number | null> {
  let [tokens, pieces, end] = [0, 0, 0];
  while (end < text.length && tokens <= contextSize + SLACK * pieces) {
    failIfAborted(signal);
    const next = end + PIECE;
    const isWithinPair = (text.charCodeAt(next - 1) & 0xfc00) === 0xd800;
    const piece = text.slice(end, isWithinPair ? next - 1 : next);
    tokens += (await tokenizer.encode(piece, { addSpecial: false, parseSpecial: false })).length;
    pieces += 1;
    end += piece.length;
  }
  return tokens > contextSize + SLACK * pieces ? Math.round((tokens / end) * text.length) : null;
}

function tooLong(field: string, tokens: number, { contextSize }: Room): OnpolicyError {
  return contextOverflow(
    field,
    `the prompt has about ${tokens} tokens; the context holds ${contextSize}. Shorten ${field === 'messages' ? 'the messages' : 'it'}`,
    { prompt_tokens: tokens, max_model_len: contextSize },
  );
}
