/** A request and what is known of its answer -> the response object. */
import { randomUUID } from 'node:crypto';
import type {
  ChatCompletion,
  ResponseCustomFormat,
  ResponseCustomTool,
  ResponseFunctionTool,
  ResponseObject,
  ResponseOutputItem,
  ResponseRequest,
  ResponseShownTool,
  ResponseTool,
  ResponseUsage,
  TokenLogprob,
  Usage,
} from '../../protocol/index.ts';
import type { CalledTool } from './tools.ts';

/** The response of a request that runs. */
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

/** The same when it has ended. */
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

/** The items of a whole answer. */
export function toItems(
  { choices }: ChatCompletion,
  called: (name: string) => CalledTool,
): ResponseOutputItem[] {
  const { message, logprobs, finish_reason } = choices[0]!;
  const { reasoning, content, tool_calls } = message;
  const items: ResponseOutputItem[] = [];
  if (reasoning)
    items.push({
      ...newReasoning(),
      content: [{ type: 'reasoning_text', text: reasoning }],
      status: 'completed',
    });
  if (content || (tool_calls.length === 0 && !reasoning))
    items.push({
      ...newMessage(),
      content: [textPart(content ?? '', logprobs?.content ?? [])],
      status: 'completed',
    });
  for (const call of tool_calls)
    items.push(
      call.type === 'custom'
        ? {
            ...newCustomCall(call.id, called(call.custom.name)),
            input: call.custom.input,
            status: 'completed',
          }
        : {
            ...newCall(call.id, called(call.function.name)),
            arguments: call.function.arguments,
            status: 'completed',
          },
    );
  const last = items.at(-1);
  if (last && finish_reason === 'length') last.status = 'incomplete';
  return items;
}

/** An item of thoughts that begins. */
export function newReasoning(): Extract<ResponseOutputItem, { type: 'reasoning' }> {
  return { id: idOf('rs'), type: 'reasoning', status: 'in_progress', summary: [], content: [] };
}

/** A message that begins. */
export function newMessage(): Extract<ResponseOutputItem, { type: 'message' }> {
  return { id: idOf('msg'), type: 'message', role: 'assistant', status: 'in_progress', content: [] };
}

/** A call that begins. */
export function newCall(
  callId: string,
  called: CalledTool,
): Extract<ResponseOutputItem, { type: 'function_call' }> {
  return {
    id: idOf('fc'),
    type: 'function_call',
    call_id: callId,
    ...called,
    arguments: '',
    status: 'in_progress',
  };
}

/** A call of a custom tool that begins. */
export function newCustomCall(
  callId: string,
  called: CalledTool,
): Extract<ResponseOutputItem, { type: 'custom_tool_call' }> {
  return {
    id: idOf('ctc'),
    type: 'custom_tool_call',
    call_id: callId,
    ...called,
    input: '',
    status: 'in_progress',
  };
}

/** The text of a message. */
export function textPart(
  text: string,
  logprobs: readonly TokenLogprob[],
): Extract<ResponseOutputItem, { type: 'message' }>['content'][number] {
  return { type: 'output_text', text, annotations: [], logprobs: [...logprobs] };
}

function idOf(kind: string): string {
  return `${kind}_${randomUUID().replaceAll('-', '')}`;
}

function toUsage(usage: Usage | null): ResponseUsage {
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
