/** A served model -> the ids of conversations, made exactly as a completion request would make them. */

import { renderMessages } from '../answer/index.ts';
import { atField } from '../common/index.ts';
import type { RunningModel } from '../models/index.ts';
import { templateFor } from '../models/index.ts';
import { validateChatRequest } from '../protocol/index.ts';
import type { ChatTokenizer, TrajectoryMessage } from '../rl/index.ts';

/** What conversations are tokenized with. */
type ChatModel = Pick<RunningModel, 'path' | 'tokenizer' | 'template' | 'toolTemplate'>;

/** The tokenizer of a model's conversations. Fails with `TEMPLATE_FAILED` when the model has no template. */
export function createChatTokenizer(model: ChatModel): ChatTokenizer {
  const { tokenizer } = model;
  async function encode(
    messages: readonly TrajectoryMessage[],
    tools: readonly unknown[] | null,
    isOpen: boolean,
  ): Promise<readonly number[]> {
    const input = { messages, tools: tools ?? [], add_generation_prompt: isOpen };
    // Fields that other servers add are left in choices, and what models wrote.
    const request = validateChatRequest(input, { wire: true, allowBrokenArguments: true });
    const { template } = templateFor(model, request);
    const text = renderMessages(request, { template, tokenizer });
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
