/** A conversation -> its user messages, and a summary of the whole that its model writes. */
import {
  type ChatCompletion,
  type ChatCompletionRequest,
  fault,
  type ResponseCompaction,
  throwFaults,
} from '../../../protocol/index.ts';
import { userItems } from './input-items.ts';
import { seal } from './sealed-text.ts';
import type { TranslatedResponse } from './to-chat.ts';
import { idOf, toUsage } from './to-response.ts';

const TASK =
  'Summarize this conversation for an assistant that continues it without seeing it. Keep what was asked, decided and done, what tools returned, names, paths and numbers that matter, and what remains to be done. Write only the summary.';
const HEADING = 'Summary of the conversation so far:\n';

/** Tokens that are left for the summary, if the context has so many. */
const SUMMARY_TOKENS = 1024;

/** Compacts a conversation. `ask`: returns a whole answer; drops the oldest messages if they do not fit. */
export async function compact(
  { chat, history }: Pick<TranslatedResponse, 'chat' | 'history'>,
  ask: (request: ChatCompletionRequest) => Promise<ChatCompletion>,
): Promise<ResponseCompaction> {
  if (history.length === 0) throwFaults([fault(['input'], 'length', 'a conversation', [])]);
  const { tools: _, tool_choice: _choice, response_format: _format, ...rest } = chat;
  const messages = [...chat.messages, { role: 'user' as const, content: TASK }];
  const asked = { ...rest, messages, max_completion_tokens: SUMMARY_TOKENS };
  const { created, choices, usage } = await ask(asked);
  const text = HEADING + (choices[0]!.message.content ?? '');
  return {
    id: idOf('resp'),
    object: 'response.compaction',
    created_at: created,
    output: [...userItems(history), { id: idOf('cmp'), type: 'compaction', encrypted_content: seal(text) }],
    usage: toUsage(usage),
  };
}
