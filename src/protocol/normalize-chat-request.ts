/** A checked chat completion request -> its normalized form. Nothing is checked here. */

import { fills } from './generated/fills.ts';
import type {
  ChatCompletionRequest,
  Prediction,
  ResponseFormat,
  Speculation,
  StructuredOutputs,
} from './generated/request-types.ts';
import { normalizeMessages } from './normalize-message.ts';
import { normalizeTools } from './normalize-tools.ts';
import { givenConstraints } from './rules/structured.ts';
import type {
  ValidChatRequest,
  ValidLogitsProcessor,
  ValidRepetition,
  ValidSpeculation,
  ValidStructuredOutputs,
} from './valid-chat-request.ts';

const INT32_MAX = 2 ** 31 - 1;
const INT64_MAX = 2n ** 63n - 1n;
const MAX_BIAS = 100;

/** Fills in every default and normalizes fields. Lists are copied, because callers may change theirs later. */
export function normalizeChatRequest(request: ChatCompletionRequest): ValidChatRequest {
  const given = fills.ChatCompletionRequest(request);
  const { chat_template: templateInKwargs, ...templateKwargs } = given.chat_template_kwargs ?? {};
  const format = given.response_format ? fromResponseFormat(given.response_format) : null;
  const normalized = {
    messages: normalizeMessages(given.messages),
    logit_bias: toBias(given.logit_bias),
    seed: toSeed(given.seed),
    stop: typeof given.stop === 'string' ? [given.stop] : [...given.stop],
    structured_outputs: format ?? (given.structured_outputs ? toConstraint(given.structured_outputs) : null),
    constraint_field: constraintField(format && given.response_format),
    logits_processors: given.logits_processors.map(toProcessor),
    inference_xargs: given.inference_xargs ?? {},
    stream_options: toStreamOptions(given.stream_options),
    chat_template_kwargs: templateKwargs,
    speculation: given.speculation ? toSpeculation(given.speculation) : given.speculation,
    prediction: toPrediction(given.prediction),
    keep_alive: toKeepAlive(given.keep_alive),
    repetition_detection: toRepetition(given.repetition_detection),
    shortens_answer: false,
    adapters: given.adapters.map(fills.Adapter),
  };
  given.model ||= null;
  if (given.top_k !== null) given.top_k = Math.min(Math.max(0, given.top_k), INT32_MAX);
  given.max_completion_tokens ??= given.max_tokens;
  if (!given.logprobs) given.top_logprobs = 0;
  if (given.stream) given.prompt_logprobs = null; // chunks have no field for them
  if (request.parallel_tool_calls === null) given.parallel_tool_calls = false;
  given.thinking_token_budget ??= given.reasoning?.max_tokens ?? null;
  if (given.thinking_token_budget === -1) given.thinking_token_budget = null;
  given.add_generation_prompt = request.add_generation_prompt ?? !given.continue_final_message;
  given.chat_template = (templateInKwargs as string | null | undefined) || given.chat_template || null;
  return Object.assign(given, normalized, normalizeTools(request)); // a spread of so many fields takes ten times as long
}

/** Fills in the settings of a method. */
export function toSpeculation(given: Speculation): ValidSpeculation {
  return typeof given === 'object' ? fills.SpeculationSettings(given) : given;
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

function toRepetition(given: ChatCompletionRequest['repetition_detection']): ValidRepetition | null {
  const filled = fills.RepetitionDetection(given ?? {});
  if (filled.max_pattern_size === 0) return null;
  return { ...filled, min_pattern_size: Math.max(1, filled.min_pattern_size) };
}

const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Returns a duration in milliseconds, infinite if it is negative. */
export function toKeepAlive(given: number | string | null): number | null {
  if (given === null) return null;
  const [, count, unit = 's'] = /^(-?[0-9.]+)(\w*)$/.exec(String(given)) ?? [];
  const ms = typeof given === 'number' ? given * 1000 : Number(count) * UNIT_MS[unit || 's']!;
  return ms < 0 ? Number.POSITIVE_INFINITY : ms;
}

/** Returns a seed, or null for -1. The largest 64-bit integers, as numbers, round to one above the range. */
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
  const { _backend, _backend_was_auto, ...filled } = fills.StructuredOutputs(given);
  const json = filled.json as ValidStructuredOutputs['json']; // schemas of other libraries are replaced where a request enters
  return { ...filled, json, json_object: filled.json_object || null };
}

function constraintField(format: ResponseFormat | null): ValidChatRequest['constraint_field'] {
  if (!format) return 'structured_outputs';
  return format.type === 'json_object' ? 'response_format.schema' : 'response_format.json_schema.schema';
}

function fromResponseFormat(format: ResponseFormat): ValidStructuredOutputs | null {
  switch (format.type) {
    case 'text':
      return null;
    case 'json_object':
      return toConstraint(format.schema ? { json: format.schema } : { json_object: true });
    case 'json_schema':
      return toConstraint({ json: format.json_schema.schema ?? null });
    case 'structural_tag':
      return toConstraint({ structural_tag: JSON.stringify(format) });
    default:
      return format satisfies never;
  }
}
