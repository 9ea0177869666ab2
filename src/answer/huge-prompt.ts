/** The failure of a template on more text than it may take -> the error of a full context, where the text alone does not fit. */
import { contextOverflow, OnpolicyError } from '../errors.ts';
import type { ValidChatRequest } from '../protocol/index.ts';
import type { Tokenizer } from '../tokenizer/index.ts';
import { contentText } from './template-message.ts';

/** Characters that are encoded at a time. */
const PIECE = 2 ** 20;

/** The error to throw. The text is encoded only until it is known not to fit; its tokens are estimated from that part. */
export async function hugePromptError(
  error: unknown,
  { messages }: ValidChatRequest,
  { tokenizer, contextSize }: { readonly tokenizer: Tokenizer; readonly contextSize: number },
): Promise<unknown> {
  if (!(error instanceof OnpolicyError) || error.detail?.[0]?.type !== 'Budget') return error;
  const text = messages.map(contentText).join('\n');
  let tokens = 0;
  let end = 0;
  while (end < text.length && tokens <= contextSize) {
    const piece = text.slice(end, end + PIECE);
    tokens += (await tokenizer.encode(piece, { addSpecial: false, parseSpecial: false })).length;
    end += piece.length;
  }
  if (tokens <= contextSize) return error;
  const reckoned = Math.round((tokens / end) * text.length);
  return contextOverflow(
    'messages',
    `the prompt has about ${reckoned} tokens; the context holds ${contextSize}. Shorten the messages`,
    { prompt_tokens: reckoned, max_model_len: contextSize },
  );
}
