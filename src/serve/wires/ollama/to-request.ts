/** A request of Ollama's API -> the equivalent chat or text completion request, and the paths of its parts in the caller's request. */
import {
  type ChatCompletionRequest,
  type ContentPart,
  type EmbeddingRequest,
  type Message,
  type OllamaChatRequest,
  type OllamaEmbedRequest,
  type OllamaGenerateRequest,
  type OllamaMessage,
  PathTranslation,
  SAME_OPTIONS,
  type TextCompletionRequest,
  type ToolCall,
} from '../../../protocol/index.ts';

export type Translated<Request> = { readonly request: Request; readonly paths: PathTranslation };

type Answered = OllamaChatRequest | OllamaGenerateRequest;

export function toChat(asked: OllamaChatRequest): Translated<ChatCompletionRequest> {
  const paths = pathsOf(asked);
  const { tools, messages } = asked;
  const hasTools = tools != null && tools.length > 0;
  return {
    request: {
      ...sharedFields(asked),
      ...thinkingFields(asked),
      ...(asked.logprobs ? { logprobs: true, top_logprobs: asked.top_logprobs ?? 0 } : {}),
      ...(hasTools ? { tools } : {}),
      messages: toMessages(messages ?? [], paths),
    },
    paths,
  };
}

/** Translates a prompt into a chat, which puts a chat template around it. */
export function toPromptChat(asked: OllamaGenerateRequest): Translated<ChatCompletionRequest> {
  const { system, prompt, images, ...rest } = asked;
  const isInstructed = system != null && system !== '';
  const messages: OllamaMessage[] = [
    ...(isInstructed ? [{ role: 'system' as const, content: system }] : []),
    { role: 'user', content: prompt, images },
  ];
  const { request, paths } = toChat({ ...rest, messages });
  const user = `messages.${messages.length - 1}`;
  if (isInstructed) for (const own of ['messages.0', 'messages.0.content']) paths.note(own, 'system');
  for (const own of [user, `${user}.content`, `${user}.content.0`]) paths.note(own, 'prompt');
  for (const i of (images ?? []).keys()) noteImage(`${user}.content.${i + 1}`, `images.${i}`, paths);
  return { request, paths };
}

/** Translates a prompt that is continued without a template. */
export function toText(asked: OllamaGenerateRequest): Translated<TextCompletionRequest> {
  const { prompt, suffix, logprobs, top_logprobs } = asked;
  const { max_completion_tokens, ...shared } = sharedFields(asked);
  const paths = pathsOf(asked);
  paths.note('max_tokens', 'options.num_predict');
  return {
    request: {
      ...shared,
      prompt: prompt ?? '',
      max_tokens: max_completion_tokens,
      ...(suffix ? { suffix } : {}),
      ...(logprobs ? { logprobs: top_logprobs ?? 0 } : {}),
    },
    paths,
  };
}

/** Translates a request for embeddings. */
export function toEmbedding({ truncate, keep_alive, ...rest }: OllamaEmbedRequest): EmbeddingRequest {
  const { model, input, dimensions } = rest;
  return {
    model,
    input: input as string | readonly string[],
    dimensions,
    truncate_prompt_tokens: truncate === false ? null : -1,
    keep_alive: toSeconds(keep_alive),
  };
}

const UNITS: Readonly<Record<string, number>> = {
  ns: 1e-9,
  us: 1e-6,
  µs: 1e-6,
  ms: 1e-3,
  s: 1,
  m: 60,
  h: 3600,
};

/** Returns `keep_alive` in seconds. -1 means forever. */
export function toSeconds(given: Answered['keep_alive']): number | null {
  if (given == null || given === '') return null;
  const text = String(given);
  if (text.startsWith('-')) return -1;
  const parts = [...text.matchAll(/([\d.]+)(ns|us|µs|ms|s|m|h)/g)];
  if (parts.length === 0) return Number(text);
  return parts.reduce((sum, [, count, unit]) => sum + Number(count) * UNITS[unit!]!, 0);
}

function pathsOf({ think }: Answered): PathTranslation {
  const paths = new PathTranslation({
    max_completion_tokens: 'options.num_predict',
    repetition_penalty: 'options.repeat_penalty',
    'response_format.json_schema.schema': 'format',
    response_format: 'format',
    reasoning_effort: 'think',
    ...(think == null ? {} : { chat_template_kwargs: 'think' }),
  });
  for (const name of SAME_OPTIONS) paths.note(name, `options.${name}`);
  return paths;
}

/** Returns the fields that chat and text completions share. */
function sharedFields({ model, format, options, keep_alive }: Answered) {
  const limit = options?.num_predict ?? 0;
  return {
    ...Object.fromEntries(SAME_OPTIONS.map((name) => [name, options?.[name]])),
    model,
    repetition_penalty: options?.repeat_penalty,
    max_completion_tokens: limit > 0 ? limit : null,
    keep_alive: toSeconds(keep_alive),
    stream: true as const,
    stream_options: { include_usage: true },
    ...(format ? { response_format: toFormat(format) } : {}),
  };
}

function toFormat(format: 'json' | object): NonNullable<ChatCompletionRequest['response_format']> {
  if (format === 'json') return { type: 'json_object' };
  return { type: 'json_schema', json_schema: { name: 'answer', schema: { ...(format as object) } } };
}

/** Template variables that turn reasoning on, by the names that templates use. */
const SWITCHES = { enable_thinking: true, thinking: true };

function thinkingFields({
  think,
}: Answered): Pick<ChatCompletionRequest, 'reasoning_effort' | 'chat_template_kwargs'> {
  if (think == null) return {};
  if (think === false) return { reasoning_effort: 'none' };
  const effort = think === true ? {} : { reasoning_effort: think };
  return { chat_template_kwargs: SWITCHES, ...effort };
}

function toMessages(messages: readonly OllamaMessage[], paths: PathTranslation): Message[] {
  const open: { id: string; name: string }[] = []; // calls without a result
  return messages.map((message, i): Message => {
    const { role, thinking, tool_calls } = message;
    const content = toContent(message, `messages.${i}`, paths);
    if (role === 'tool') {
      const { tool_call_id, tool_name } = message;
      const at = open.findIndex(({ id, name }) =>
        tool_call_id ? id === tool_call_id : !tool_name || name === tool_name,
      );
      const [call] = at < 0 ? [] : open.splice(at, 1);
      return { role, content, tool_call_id: call?.id ?? tool_call_id ?? null };
    }
    if (role !== 'assistant') return { role, content };
    const calls = (tool_calls ?? []).map(({ id, function: called }, k): ToolCall => {
      const own = id || `call_${i}_${k}`;
      open.push({ id: own, name: called.name });
      const args = JSON.stringify(called.arguments ?? {});
      return { id: own, type: 'function', function: { name: called.name, arguments: args } };
    });
    return {
      role,
      content,
      ...(thinking ? { reasoning: thinking } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    };
  });
}

function toContent(
  { content, images }: OllamaMessage,
  at: string,
  paths: PathTranslation,
): string | ContentPart[] {
  const text = content ?? '';
  if (!images?.length) return text;
  return [
    { type: 'text', text },
    ...images.map((data, i) => {
      noteImage(`${at}.content.${i + 1}`, `${at}.images.${i}`, paths);
      const url = data.startsWith('data:') ? data : `data:;base64,${data}`;
      return { type: 'image_url' as const, image_url: { url } };
    }),
  ];
}

function noteImage(part: string, image: string, paths: PathTranslation): void {
  paths.note(part, image);
  paths.note(`${part}.image_url.url`, image);
}
