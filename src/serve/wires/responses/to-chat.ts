/** A request of the responses API -> the equivalent chat completion request, and the paths of its parts in the caller's request. */
import {
  type ChatCompletionRequest,
  type ContentPart,
  EXTRA_FIELDS,
  fileText,
  type Message,
  PathTranslation,
  type ResponseCustomChoice,
  type ResponseFunctionChoice,
  type ResponseInputPart,
  type ResponseOutputItem,
  type ResponseRequest,
  type ToolCall,
} from '../../../protocol/index.ts';
import { type ToolItem, toExchange } from './history.ts';
import type { ResponseItem } from './response-store.ts';
import { unseal } from './sealed-text.ts';
import { flatName, toTools } from './tools.ts';

/** A request whose references to items are replaced by the items. */
export type ResolvedRequest = Omit<ResponseRequest, 'input'> & {
  readonly input: string | readonly ResponseItem[];
};

/** A translated request. `history`: its messages without the instructions. */
export type TranslatedResponse = {
  readonly chat: ChatCompletionRequest;
  readonly history: readonly Message[];
  readonly paths: PathTranslation;
};

/** Translates a request. `earlier`: the messages before its input. */
export function toChat(request: ResolvedRequest, earlier: readonly Message[]): TranslatedResponse {
  const { input, instructions, text, reasoning, tools, tool_choice: choice, top_logprobs, include } = request;
  const paths = new PathTranslation({
    max_completion_tokens: 'max_output_tokens',
    reasoning_effort: 'reasoning.effort',
    'response_format.json_schema.schema': 'text.format.schema',
    'response_format.schema': 'text.format.schema',
    response_format: 'text.format',
    'tool_choice.function.name': 'tool_choice.name',
    'tool_choice.custom.name': 'tool_choice.name',
    'tool_choice.allowed_tools.tools': 'tool_choice.tools',
    messages: earlier.length > 0 ? 'previous_response_id' : 'input',
  });
  const first = instructions ? 1 : 0;
  if (instructions) paths.note('messages.0', 'instructions');
  const history = [...earlier, ...toMessages(input, first + earlier.length, paths)];
  const format = text?.format ?? null;
  const wantsLogprobs = (top_logprobs ?? null) !== null || include?.includes('message.output_text.logprobs');
  const effort = reasoning?.effort ?? null;
  const chat: ChatCompletionRequest = {
    ...Object.fromEntries([...EXTRA_FIELDS, 'stop'].map((field) => [field, request[field as 'seed']])),
    messages: instructions ? [{ role: 'system', content: instructions }, ...history] : history,
    model: request.model,
    temperature: request.temperature,
    top_p: request.top_p,
    top_k: request.top_k,
    max_completion_tokens: request.max_output_tokens,
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    ...(tools ? { tools: toTools(tools, paths) } : {}),
    ...(choice ? { tool_choice: toToolChoice(choice) } : {}),
    ...(format ? { response_format: toFormat(format) } : {}),
    ...(effort === null ? {} : { reasoning_effort: effort }),
    ...(reasoning?.max_tokens == null ? {} : { reasoning: { max_tokens: reasoning.max_tokens } }),
    ...(wantsLogprobs ? { logprobs: true, top_logprobs: top_logprobs ?? 0 } : {}),
  };
  return { chat, history, paths };
}

/** Returns the items of an answer as messages, for a chat that continues it. */
export function outputMessages(items: readonly ResponseOutputItem[]): Message[] {
  return toMessages(items as readonly ResponseItem[], 0, new PathTranslation());
}

function toToolChoice(
  choice: NonNullable<ResponseRequest['tool_choice']>,
): NonNullable<ChatCompletionRequest['tool_choice']> {
  if (typeof choice === 'string') return choice;
  const named = (tool: ResponseFunctionChoice | ResponseCustomChoice) => {
    const name = flatName(tool);
    return tool.type === 'custom'
      ? { type: tool.type, custom: { name } }
      : { type: 'function' as const, function: { name } };
  };
  if (choice.type !== 'allowed_tools') return named(choice);
  return { type: 'allowed_tools', allowed_tools: { mode: choice.mode, tools: choice.tools.map(named) } };
}

function toFormat(
  format: NonNullable<NonNullable<ResponseRequest['text']>['format']>,
): NonNullable<ChatCompletionRequest['response_format']> {
  if (format.type === 'json_object') return { type: 'json_object', schema: format.schema ?? null };
  if (format.type === 'text') return { type: 'text' };
  return { type: 'json_schema', json_schema: { name: format.name ?? 'answer', schema: format.schema! } };
}

/** Message of the assistant that collects consecutive items. */
type Turn = { role: 'assistant'; content: ContentPart[]; tool_calls?: ToolCall[]; reasoning?: string };

/** Translates the input. Consecutive thoughts, text and calls become one message of the assistant. */
function toMessages(input: ResolvedRequest['input'], start: number, paths: PathTranslation): Message[] {
  if (typeof input === 'string') {
    paths.note(`messages.${start}`, 'input');
    return [{ role: 'user', content: input }];
  }
  const messages: Message[] = [];
  let turn: Turn | null = null;
  const place = (): string => `messages.${start + messages.length - 1}`;
  const assistant = (from: string): Turn => {
    if (!turn) {
      turn = { role: 'assistant', content: [] };
      messages.push(turn);
      paths.note(place(), from);
    }
    return turn;
  };
  for (const [i, item] of input.entries()) {
    const from = `input.${i}`;
    if (item.type === 'reasoning') {
      const text = thoughtsIn(item);
      if (text !== '') {
        const at = assistant(from);
        at.reasoning = (at.reasoning ?? '') + text;
      }
    } else if (item.type === 'function_call' || item.type === 'custom_tool_call') {
      const at = assistant(from);
      at.tool_calls ??= [];
      const call = toCall(item);
      paths.note(`${place()}.tool_calls.${at.tool_calls.length}.${call.type}`, from);
      at.tool_calls.push(call);
    } else if (item.type === 'function_call_output' || item.type === 'custom_tool_call_output') {
      turn = null;
      const content = typeof item.output === 'string' ? item.output : item.output.map(toPart);
      messages.push({ role: 'tool', tool_call_id: item.call_id, content });
      paths.note(place(), from);
    } else if (item.type === 'compaction' || item.type === 'compaction_summary') {
      const text = unseal(item.encrypted_content);
      if (text !== null) assistant(from).content.push({ type: 'text', text });
    } else if (item.type !== undefined && item.type !== 'message') {
      const { call, result } = toExchange(item as ToolItem);
      if (call) {
        const at = assistant(from);
        at.tool_calls = [...(at.tool_calls ?? []), call];
      }
      if (result) {
        turn = null;
        messages.push({ role: 'tool', tool_call_id: result.id, content: result.text });
        paths.note(place(), from);
      }
    } else if (item.role === 'assistant') {
      const { content } = assistant(from);
      if (typeof item.content === 'string') content.push({ type: 'text', text: item.content });
      else for (const part of item.content) content.push(toPart(part));
    } else {
      turn = null;
      messages.push({
        role: item.role as 'user',
        content: typeof item.content === 'string' ? item.content : item.content.map(toPart),
      });
      paths.note(place(), from);
    }
  }
  return messages;
}

/** Returns the thoughts of an item: its content, else the text that this library has sealed, else its summary. */
function thoughtsIn({
  content,
  encrypted_content,
  summary,
}: Extract<ResponseItem, { type: 'reasoning' }>): string {
  if (content?.length) return content.map(({ text }) => text).join('');
  return unseal(encrypted_content) ?? (summary ?? []).map(({ text }) => text).join('\n\n');
}

function toCall(
  item: Extract<ResponseItem, { type: 'function_call' | 'custom_tool_call' }>,
): ToolCall & { type: 'function' | 'custom' } {
  const id = item.call_id;
  const name = flatName(item);
  return item.type === 'custom_tool_call'
    ? { id, type: 'custom', custom: { name, input: item.input } }
    : { id, type: 'function', function: { name, arguments: item.arguments } };
}

function toPart(part: ResponseInputPart): ContentPart {
  if (part.type === 'input_image')
    return {
      type: 'image_url',
      image_url: { url: part.image_url, ...(part.detail ? { detail: part.detail } : {}) },
    };
  if (part.type === 'input_file') return toFile(part);
  return { type: 'text', text: part.type === 'refusal' ? part.refusal : part.text };
}

/** Translates a file. Text and pictures are kept. For other files a note tells the model that it cannot read them. */
function toFile({
  file_data: data,
  ...part
}: Extract<ResponseInputPart, { type: 'input_file' }>): ContentPart {
  const filename = part.filename ?? part.file_url ?? part.file_id ?? null;
  const isReadable = data != null && data !== '' && (fileText(data) !== null || /^data:image\//i.test(data));
  if (isReadable) return { type: 'file', file: { file_data: data, filename } };
  return { type: 'text', text: `(The file ${filename ?? 'of this message'} cannot be read here.)` };
}
