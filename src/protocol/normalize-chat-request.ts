/** A checked chat completion request -> its one form. Only reads: nothing is checked here. */

import type {
  ChatCompletionRequest,
  Prediction,
  ResponseFormat,
  Speculation,
  StructuredOutputs,
} from './generated/request-types.ts';
import { toLlamaSamplers } from './normalize-llama-samplers.ts';
import { normalizeMessages } from './normalize-message.ts';
import { normalizeTools } from './normalize-tools.ts';
import { givenConstraints } from './rules/structured.ts';
import type {
  ValidChatRequest,
  ValidLogitsProcessor,
  ValidSpeculation,
  ValidStructuredOutputs,
} from './valid-chat-request.ts';

const INT32_MAX = 2 ** 31 - 1;
const INT64_MAX = 2n ** 63n - 1n;
const MAX_BIAS = 100;

/**
 * Fills in every default; those of single fields equal the schema's. Lists that steer the sampler are copied, so that a
 * caller who changes his own later does not change a request under way.
 */
export function normalizeChatRequest(request: ChatCompletionRequest): ValidChatRequest {
  const { chat_template: templateInKwargs, ...templateKwargs } = request.chat_template_kwargs ?? {};
  const logprobs = request.logprobs ?? false;
  const format = request.response_format ? fromResponseFormat(request.response_format) : null;
  return {
    messages: normalizeMessages(request.messages),
    model: request.model || null,
    frequency_penalty: request.frequency_penalty ?? 0,
    presence_penalty: request.presence_penalty ?? 0,
    repetition_penalty: request.repetition_penalty ?? null,
    logit_bias: toBias(request.logit_bias),
    temperature: request.temperature ?? null,
    top_p: request.top_p ?? null,
    top_k: request.top_k == null ? null : Math.min(Math.max(0, request.top_k), INT32_MAX),
    min_p: request.min_p ?? null,
    ...toLlamaSamplers(request),
    seed: toSeed(request.seed ?? null),
    n: request.n ?? 1,
    use_beam_search: request.use_beam_search ?? false,
    length_penalty: request.length_penalty ?? 1,
    max_tokens: request.max_tokens ?? null,
    max_completion_tokens: request.max_completion_tokens ?? request.max_tokens ?? null,
    min_tokens: request.min_tokens ?? 0,
    stop: typeof request.stop === 'string' ? [request.stop] : [...(request.stop ?? [])],
    stop_token_ids: [...(request.stop_token_ids ?? [])],
    include_stop_str_in_output: request.include_stop_str_in_output ?? false,
    ignore_eos: request.ignore_eos ?? false,
    allowed_token_ids: request.allowed_token_ids ? [...request.allowed_token_ids] : null,
    bad_words: [...(request.bad_words ?? [])],
    structured_outputs: format ?? toConstraint(request.structured_outputs ?? {}),
    constraint_field: format ? 'response_format' : 'structured_outputs',
    logits_processors: (request.logits_processors ?? []).map(toProcessor),
    inference_xargs: request.inference_xargs ?? {},
    logprobs,
    top_logprobs: logprobs ? (request.top_logprobs ?? 0) : 0,
    prompt_logprobs: request.stream ? null : (request.prompt_logprobs ?? null),
    return_tokens_as_token_ids: request.return_tokens_as_token_ids ?? false,
    return_token_ids: request.return_token_ids ?? false,
    stream: request.stream ?? false,
    stream_options: toStreamOptions(request.stream_options ?? null),
    skip_special_tokens: request.skip_special_tokens ?? true,
    spaces_between_special_tokens: request.spaces_between_special_tokens ?? true,
    include_reasoning: request.include_reasoning ?? true,
    echo: request.echo ?? false,
    request_id: request.request_id ?? null,
    user: request.user ?? null,
    ...normalizeTools(request),
    parallel_tool_calls:
      request.parallel_tool_calls === undefined ? true : (request.parallel_tool_calls ?? false),
    reasoning_effort: request.reasoning_effort ?? null,
    reasoning: request.reasoning ?? null,
    thinking_token_budget: request.thinking_token_budget ?? request.reasoning?.max_tokens ?? null,
    add_generation_prompt: request.add_generation_prompt ?? !request.continue_final_message,
    continue_final_message: request.continue_final_message ?? false,
    add_special_tokens: request.add_special_tokens ?? false,
    documents: request.documents ?? null,
    chat_template: (templateInKwargs as string | null | undefined) || request.chat_template || null,
    chat_template_kwargs: templateKwargs,
    truncate_prompt_tokens: request.truncate_prompt_tokens ?? null,
    context_shift: request.context_shift ?? false,
    n_keep: request.n_keep ?? null,
    mm_processor_kwargs: request.mm_processor_kwargs ?? null,
    priority: request.priority ?? 0,
    speculation: request.speculation ? toSpeculation(request.speculation) : (request.speculation ?? null),
    prediction: toPrediction(request.prediction ?? null),
    cache_salt: request.cache_salt ?? null,
    timeout_ms: request.timeout_ms ?? null,
    keep_alive: toKeepAlive(request.keep_alive ?? null),
    adapters: (request.adapters ?? []).map(({ model, file, scale }) => ({
      model: model ?? null,
      file: file ?? null,
      scale: scale ?? 1,
    })),
    kv_transfer_params: request.kv_transfer_params ?? null,
  };
}

/** Fills in the settings of a method. */
export function toSpeculation(given: Speculation): ValidSpeculation {
  if (typeof given !== 'object') return given;
  const { method, maxTokens, minMatch, model } = given;
  return { method, maxTokens: maxTokens ?? 15, minMatch: minMatch ?? 3, model: model ?? null };
}

function toPrediction(given: Prediction | null): string {
  const content = given?.content ?? '';
  return typeof content === 'string' ? content : content.map(({ text }) => text).join('');
}

function toBias(given: ChatCompletionRequest['logit_bias']): Map<number, number> {
  const bias = new Map<number, number>();
  for (const [id, value] of Object.entries(given ?? {}))
    if (value !== undefined) bias.set(Number(id), Math.min(MAX_BIAS, Math.max(-MAX_BIAS, value)));
  return bias;
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Milliseconds; infinite for negative ones. */
export function toKeepAlive(given: number | string | null): number | null {
  if (given === null) return null;
  const [, count, unit = 's'] = /^(-?[0-9.]+)(\w*)$/.exec(String(given)) ?? [];
  const ms = typeof given === 'number' ? given * 1000 : Number(count) * UNIT_MS[unit || 's']!;
  return ms < 0 ? Number.POSITIVE_INFINITY : ms;
}

/** -1 asks for no seed. The largest 64-bit integers, as numbers, round to one above the range. */
function toSeed(given: number | bigint | null): bigint | null {
  if (given === null) return null;
  const seed = BigInt(given);
  if (seed === -1n) return null;
  return seed > INT64_MAX ? INT64_MAX : seed;
}

function toStreamOptions(given: ChatCompletionRequest['stream_options']): ValidChatRequest['stream_options'] {
  if (!given) return { include_usage: false, continuous_usage_stats: false };
  const include_usage = given.include_usage === undefined ? true : (given.include_usage ?? false);
  return { include_usage, continuous_usage_stats: include_usage && (given.continuous_usage_stats ?? false) };
}

function toProcessor(
  item: NonNullable<ChatCompletionRequest['logits_processors']>[number],
): ValidLogitsProcessor {
  if (typeof item !== 'object') return item;
  return { qualname: item.qualname, args: item.args ?? [], kwargs: item.kwargs ?? {} };
}

function toConstraint(given: StructuredOutputs): ValidStructuredOutputs | null {
  if (givenConstraints(given).length === 0) return null;
  return {
    json: given.json ?? null,
    regex: given.regex ?? null,
    choice: given.choice ?? null,
    grammar: given.grammar ?? null,
    json_object: given.json_object || null,
    structural_tag: given.structural_tag ?? null,
    disable_fallback: given.disable_fallback ?? false,
    disable_any_whitespace: given.disable_any_whitespace ?? false,
    disable_additional_properties: given.disable_additional_properties ?? false,
    whitespace_pattern: given.whitespace_pattern ?? null,
    property_order: given.property_order ?? null,
    schemas: given.schemas ?? null,
  };
}

function fromResponseFormat(format: ResponseFormat): ValidStructuredOutputs | null {
  switch (format.type) {
    case 'text':
      return null;
    case 'json_object':
      return toConstraint({ json_object: true });
    case 'json_schema':
      return toConstraint({ json: format.json_schema.schema ?? null });
    case 'structural_tag':
      return toConstraint({ structural_tag: JSON.stringify(format) });
    default:
      return format satisfies never;
  }
}
