/** A request and the state of its answer -> the response object. */
import { randomUUID } from 'node:crypto';
import type {
  ChatCompletion,
  ResponseCustomFormat,
  ResponseCustomTool,
  ResponseFunctionTool,
  ResponseObject,
  ResponseOutputItem,
  ResponseReasoningOutput,
  ResponseRequest,
  ResponseShownTool,
  ResponseTool,
  ResponseUsage,
  TokenLogprob,
  Usage,
} from '../../../protocol/index.ts';
import { seal } from './sealed-text.ts';

/** A part of the thoughts of an item. */
export type ThoughtsPart = ResponseReasoningOutput['summary' | 'content'][number];

/** Returns the response of a running request. */
export function beginResponse(
  request: ResponseRequest,
  { id, created, model }: Pick<ChatCompletion, 'id' | 'created' | 'model'>,
): ResponseObject {
  return {
    id: `resp_${id.replace(/^chatcmpl-/, '')}`,
    object: 'response',
    created_at: created,
    completed_at: null,
    status: 'in_progress',
    error: null,
    incomplete_details: null,
    model,
    output: [],
    output_text: '',
    usage: null,
    instructions: request.instructions ?? null,
    previous_response_id: request.previous_response_id ?? null,
    max_output_tokens: request.max_output_tokens ?? null,
    reasoning: {
      effort: request.reasoning?.effort ?? null,
      summary: request.reasoning?.summary ?? null,
    },
    temperature: request.temperature ?? null,
    top_p: request.top_p ?? null,
    parallel_tool_calls: request.parallel_tool_calls ?? true,
    tool_choice: toolChoiceOf(request),
    tools: (request.tools ?? []).map(toShownTool),
    text: request.text ?? { format: { type: 'text' } },
    truncation: request.truncation ?? 'disabled',
    metadata: { ...request.metadata },
    store: request.store ?? true,
    background: false,
  };
}

function toShownTool(tool: ResponseTool): ResponseObject['tools'][number] {
  if (tool.type === 'namespace')
    return { ...tool, description: String(tool.description ?? ''), tools: tool.tools.map(toShownInner) };
  return toShownInner(tool);
}

function toShownInner(tool: ResponseFunctionTool | ResponseCustomTool): ResponseShownTool {
  const { name } = tool;
  if (tool.type === 'custom')
    return {
      type: 'custom',
      name,
      ...(tool.description == null ? {} : { description: tool.description }),
      ...(tool.format ? { format: tool.format as ResponseCustomFormat } : {}),
    };
  return {
    type: 'function',
    name,
    description: tool.description ?? null,
    parameters: tool.parameters ?? null,
    strict: tool.strict ?? null,
  };
}

function toolChoiceOf({ tool_choice: choice, tools }: ResponseRequest): ResponseObject['tool_choice'] {
  const given = choice ?? (tools?.length ? 'auto' : 'none');
  if (typeof given === 'string' || given.type !== 'allowed_tools') return given;
  return { ...given, tools: given.tools.map((tool) => ({ ...tool })) };
}

/** Returns the response of a request that has ended. */
export function endResponse(
  response: ResponseObject,
  output: ResponseOutputItem[],
  isCut: boolean,
  usage: Usage | null,
): ResponseObject {
  const texts = output.flatMap((item) =>
    item.type === 'message' ? item.content.map(({ text }) => text) : [],
  );
  return {
    ...response,
    completed_at: Math.floor(Date.now() / 1000),
    status: isCut ? 'incomplete' : 'completed',
    incomplete_details: isCut ? { reason: 'max_output_tokens' } : null,
    output,
    output_text: texts.join(''),
    usage: toUsage(usage),
  };
}

/** Prefixes of the ids of items. */
export const PREFIXES = {
  function_call: 'fc',
  custom_tool_call: 'ctc',
  message: 'msg',
  reasoning: 'rs',
  web_search_call: 'ws',
} as const;

type Item<Type> = Extract<ResponseOutputItem, { type: Type }>;

/** Returns a new item that is in progress. */
export function newItem<Type extends ResponseOutputItem['type']>(
  type: Type,
  fields: Omit<Item<Type>, 'id' | 'type' | 'status'>,
): Item<Type> {
  return { id: idOf(PREFIXES[type]), type, ...fields, status: 'in_progress' } as object as Item<Type>;
}

/** Adds the part that the thoughts stand in: of the summary if the request asks for one, else of the content. */
export function thoughtsPart(
  { summary, content }: ResponseReasoningOutput,
  { reasoning }: ResponseRequest,
): ThoughtsPart {
  const isSummary = (reasoning?.summary ?? null) !== null;
  if (isSummary) summary.push({ type: 'summary_text', text: '' });
  else content.push({ type: 'reasoning_text', text: '' });
  return (isSummary ? summary : content)[0]!;
}

export function thoughtsOf({ summary, content }: ResponseReasoningOutput): string {
  return [...summary, ...content].map(({ text }) => text).join('');
}

/** Returns the field with the whole thoughts, for a client that sends them back unread. */
export function sealedThoughts(
  item: ResponseReasoningOutput,
  { include }: ResponseRequest,
): Pick<ResponseReasoningOutput, 'encrypted_content'> {
  if (!include?.includes('reasoning.encrypted_content')) return {};
  return { encrypted_content: seal(thoughtsOf(item)) };
}

export function textPart(
  text: string,
  logprobs: readonly TokenLogprob[],
): Extract<ResponseOutputItem, { type: 'message' }>['content'][number] {
  return { type: 'output_text', text, annotations: [], logprobs: [...logprobs] };
}

export function idOf(kind: string): string {
  return `${kind}_${randomUUID().replaceAll('-', '')}`;
}

/** Returns the token counts of a request. */
export function toUsage(usage: Usage | null): ResponseUsage {
  return {
    input_tokens: usage?.prompt_tokens ?? 0,
    input_tokens_details: {
      cached_tokens: usage?.prompt_tokens_details?.cached_tokens ?? 0,
      cache_write_tokens: 0,
    },
    output_tokens: usage?.completion_tokens ?? 0,
    output_tokens_details: { reasoning_tokens: usage?.completion_tokens_details?.reasoning_tokens ?? 0 },
    total_tokens: usage?.total_tokens ?? 0,
  };
}
