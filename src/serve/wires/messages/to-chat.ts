/** A request of the messages API -> the equivalent chat completion request, and the paths of its parts in the caller's request. */
import {
  type ChatCompletionRequest,
  type ContentPart,
  EXTRA_FIELDS,
  fault,
  type Message,
  type MessageBlock,
  type MessageCountRequest,
  type MessageRequest,
  type MessageTool,
  PathTranslation,
  type Tool,
  type ToolCall,
  throwFaults,
} from '../../../protocol/index.ts';

import { clientTool } from './client-tools.ts';

export type TranslatedChat = { readonly chat: ChatCompletionRequest; readonly paths: PathTranslation };

/** Translates a request. An assistant message at the end is left open, so that the answer continues it. */
export function toChat(request: MessageRequest | MessageCountRequest): TranslatedChat {
  const paths = new PathTranslation({
    max_completion_tokens: 'max_tokens',
    stop: 'stop_sequences',
    'reasoning.max_tokens': 'thinking.budget_tokens',
    reasoning_effort: request.thinking?.type === 'disabled' ? 'thinking' : 'output_config.effort',
    'response_format.json_schema.schema': 'output_config.format.schema',
    response_format: 'output_config.format',
    'tool_choice.function.name': 'tool_choice.name',
    chat_template_kwargs: 'chat_template_kwargs',
  });
  const { tool_choice: choice, output_config: output, thinking, max_tokens, stop_sequences } = request;
  const messages = toMessages(request, paths);
  const format = output?.format ?? null;
  const isContinued = messages.at(-1)?.role === 'assistant' && !hasCalls(messages.at(-1)!);
  const chat: ChatCompletionRequest = {
    ...Object.fromEntries(EXTRA_FIELDS.map((field) => [field, request[field as 'seed']])),
    messages,
    model: request.model,
    temperature: request.temperature,
    top_p: request.top_p,
    top_k: request.top_k,
    max_completion_tokens: max_tokens,
    stop: stop_sequences,
    ...(request.tools ? { tools: request.tools.map((tool, i) => toTool(tool, i, paths)) } : {}),
    ...(choice
      ? { tool_choice: toToolChoice(choice), parallel_tool_calls: !choice.disable_parallel_tool_use }
      : {}),
    ...(format
      ? { response_format: { type: 'json_schema', json_schema: { name: 'answer', schema: format.schema } } }
      : {}),
    ...effortOf(request),
    ...budgetOf(thinking),
    ...(thinking?.display === 'omitted' ? { include_reasoning: false } : {}),
    ...(isContinued ? { continue_final_message: true } : {}),
  };
  return { chat, paths };
}

/** Template variables that turn reasoning on, by the names that templates use. */
const SWITCHES = { enable_thinking: true, thinking: true };

function effortOf({
  thinking,
  output_config,
  chat_template_kwargs: kwargs,
}: MessageCountRequest): Pick<ChatCompletionRequest, 'reasoning_effort' | 'chat_template_kwargs'> {
  if (thinking?.type === 'disabled') return { reasoning_effort: 'none' };
  const effort = output_config?.effort ?? null;
  return {
    ...(effort === null ? {} : { reasoning_effort: effort }),
    ...(thinking ? { chat_template_kwargs: { ...SWITCHES, ...kwargs } } : {}),
  };
}

function budgetOf(thinking: MessageCountRequest['thinking']): Pick<ChatCompletionRequest, 'reasoning'> {
  const budget = thinking?.type === 'disabled' ? null : (thinking?.budget_tokens ?? null);
  return budget === null ? {} : { reasoning: { max_tokens: budget } };
}

function toToolChoice(
  choice: NonNullable<MessageCountRequest['tool_choice']>,
): NonNullable<ChatCompletionRequest['tool_choice']> {
  if (choice.type === 'tool') return { type: 'function', function: { name: choice.name! } };
  return choice.type === 'any' ? 'required' : choice.type;
}

function toTool(tool: MessageTool, index: number, paths: PathTranslation): Tool {
  const { name, strict } = tool;
  const { description, input_schema } = 'input_schema' in tool ? tool : clientTool(tool.type);
  paths.note(`tools.${index}.function`, `tools.${index}`);
  paths.note(`tools.${index}.function.parameters`, `tools.${index}.input_schema`);
  const parameters = input_schema as NonNullable<
    Extract<Tool, { type: 'function' }>['function']['parameters']
  >;
  return {
    type: 'function',
    function: {
      name,
      parameters,
      ...(description == null ? {} : { description }),
      ...(strict == null ? {} : { strict }),
    },
  };
}

/** Translates the messages. The system prompt comes first. */
function toMessages({ system, messages }: MessageCountRequest, paths: PathTranslation): Message[] {
  const made: Message[] = [];
  const add = (message: Message, from: string): void => {
    paths.note(`messages.${made.length}`, from);
    made.push(message);
  };
  /** Adds blocks to the messages. Each tool result becomes a separate message, and so do the blocks between results. */
  const addBlocks = (role: 'user' | 'system', blocks: readonly MessageBlock[], from: string): void => {
    let open: ContentPart[] | null = null;
    for (const [k, block] of blocks.entries()) {
      const own = `${from}.content.${k}`;
      if (block.type === 'tool_result') {
        open = null;
        const place = `messages.${made.length}.content`;
        const { content, tool_use_id } = block;
        const parts = Array.isArray(content)
          ? content.flatMap((inner, j) => toParts(inner, place, `${own}.content.${j}`, paths, j))
          : ((content as string | null | undefined) ?? '');
        add({ role: 'tool', tool_call_id: tool_use_id, content: parts }, own);
      } else {
        if (!open) {
          open = [];
          add({ role, content: open }, from);
        }
        open.push(...toParts(block, `messages.${made.length - 1}.content`, own, paths, open.length));
      }
    }
  };
  paths.note('messages', 'messages');
  if (system != null && system.length > 0)
    add(
      {
        role: 'system',
        content:
          typeof system === 'string'
            ? withoutHash(system)
            : system.map(({ text }) => ({ type: 'text', text: withoutHash(text) })),
      },
      'system',
    );
  for (const [i, { role, content }] of messages.entries()) {
    const from = `messages.${i}`;
    if (typeof content === 'string') add({ role, content }, from);
    else if (role === 'assistant') add(toAssistant(content, from, made.length, paths), from);
    else if (content.length === 0) add({ role, content: [] }, from);
    else addBlocks(role, content, from);
  }
  return made;
}

const BILLING_HEADER = /^x-anthropic-billing-header:[^\n]*?\bcch=(\w+)/;

/**
 * Replaces a hash that Claude Code puts at the start of its instructions and changes with each request. With zeros in its place, the cached
 * prefix stays valid.
 */
function withoutHash(text: string): string {
  const [header, hash] = BILLING_HEADER.exec(text) ?? [];
  if (header === undefined || hash === undefined) return text;
  return header.slice(0, -hash.length) + '0'.repeat(hash.length) + text.slice(header.length);
}

/**
 * Translates a block of a user's message into parts of a chat message. Blocks that only the model makes become text; those of Anthropic's
 * servers are left out.
 */
function toParts(
  block: MessageBlock,
  list: string,
  from: string,
  paths: PathTranslation,
  index: number,
): ContentPart[] {
  paths.note(`${list}.${index}`, from);
  switch (block.type) {
    case 'text':
      return [{ type: 'text', text: block.text }];
    case 'image': {
      const { source } = block;
      paths.note(
        `${list}.${index}.image_url.url`,
        `${from}.source.${source.type === 'url' ? 'url' : 'data'}`,
      );
      const url = source.type === 'url' ? source.url : `data:${source.media_type};base64,${source.data}`;
      return [{ type: 'image_url', image_url: { url } }];
    }
    case 'document': {
      const head = [block.title, block.context].filter((line) => line != null && line !== '');
      return [{ type: 'text', text: [...head, block.source.data].join('\n') }];
    }
    case 'thinking':
      return [{ type: 'thinking', thinking: block.thinking }];
    default:
      return [];
  }
}

function toAssistant(
  blocks: readonly MessageBlock[],
  from: string,
  place: number,
  paths: PathTranslation,
): Message {
  const calls: ToolCall[] = [];
  const texts: ContentPart[] = [];
  const thoughts: string[] = [];
  for (const [i, block] of blocks.entries()) {
    if (block.type === 'thinking') thoughts.push(block.thinking);
    else if (block.type === 'tool_use') {
      paths.note(`messages.${place}.tool_calls.${calls.length}`, `${from}.content.${i}`);
      paths.note(`messages.${place}.tool_calls.${calls.length}.function`, `${from}.content.${i}`);
      const { id, name, input } = block;
      calls.push({
        id,
        type: 'function',
        function: { name, arguments: jsonOf(input, `${from}.content.${i}.input`) },
      });
    } else
      texts.push(...toParts(block, `messages.${place}.content`, `${from}.content.${i}`, paths, texts.length));
  }
  return {
    role: 'assistant',
    content: texts,
    ...(thoughts.length > 0 ? { reasoning: thoughts.join('\n') } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

function hasCalls(message: Message): boolean {
  return 'tool_calls' in message && (message.tool_calls?.length ?? 0) > 0;
}

function jsonOf(input: unknown, path: string): string {
  try {
    return JSON.stringify(input);
  } catch {
    throwFaults([fault(path.split('.'), 'type', 'JSON data', input)]);
    return '';
  }
}
