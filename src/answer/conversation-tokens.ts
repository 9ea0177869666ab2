/** A served model -> the ids of conversations, made exactly as a completion request would make them. */

import { atField } from '../common/index.ts';
import type { RunningModel } from '../models/index.ts';
import { checkAndAdmitChat } from '../protocol/index.ts';
import { templateFor } from '../template/chat-format/index.ts';
import { renderMessages } from './prompt.ts';
import { callPlan } from './render-prompt.ts';

/** Parts of a model that conversations are tokenized with. */
type ChatModel = Pick<RunningModel, 'path' | 'tokenizer' | 'template' | 'toolTemplate'>;

/** Converts conversations to token ids. */
export type ConversationTokenizer = {
  /** Returns the ids of a conversation up to where the assistant's next turn starts. */
  prompt(messages: readonly object[], tools: readonly unknown[] | null): Promise<readonly number[]>;
  /** Returns the ids of a whole conversation, with its last turn closed. */
  conversation(messages: readonly object[], tools: readonly unknown[] | null): Promise<readonly number[]>;
  /** Returns true if sampling this token ends a turn. */
  isEnd(token: number): boolean;
};

/** Returns a tokenizer for a model's conversations. Fails with `TEMPLATE_FAILED` when the model has no template. */
export function conversationTokenizer(model: ChatModel): ConversationTokenizer {
  const { tokenizer } = model;
  async function encode(
    messages: readonly object[],
    tools: readonly unknown[] | null,
    isOpen: boolean,
  ): Promise<readonly number[]> {
    const input = { messages, tools: tools ?? [], add_generation_prompt: isOpen };
    // Fields that other servers add to choices are allowed.
    const request = checkAndAdmitChat(input, { wire: true });
    const { template, format } = templateFor(model, request);
    const text = renderMessages(request, { template, tokenizer, calls: callPlan(format) });
    return Array.from(
      await atField('messages', () => tokenizer.encode(text, { addSpecial: false, parseSpecial: true })),
    );
  }
  return {
    prompt: (messages, tools) => encode(messages, tools, true),
    conversation: (messages, tools) => encode(messages, tools, false),
    isEnd: (token) => tokenizer.endIds.has(token),
  };
}
