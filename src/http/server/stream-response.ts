/** An answer -> the response that sends it, as a whole or as a stream. Its tokens count for the limits of its client. */
import type { AnswerStream } from '../../answer/index.ts';
import type { RequestContext } from './context.ts';
import { chunkEvents, type EventFormat, toEventStream } from './event-stream.ts';
import { json, type WireResponse } from './wire.ts';

/** What answers and chunks say of their tokens. */
type Usage = {
  readonly total_tokens?: number;
  readonly input_tokens?: number;
  readonly output_tokens?: number;
};

/** The response for an answer, or for the stream of its parts in this format. */
export function answerResponse(
  answer: object | AnswerStream<unknown>,
  context: RequestContext,
  format: EventFormat = chunkEvents,
): WireResponse {
  if (Symbol.asyncIterator in answer) return eventStreamResponse(answer, context, format);
  context.charge(tokensOf(answer));
  return json(answer);
}

function eventStreamResponse(
  parts: AnswerStream<unknown>,
  { call, toError, beginStream, charge }: RequestContext,
  format: EventFormat,
): WireResponse {
  const hooks = { signal: call.signal, toError, onEnd: beginStream(), onChunk: counterOf(charge) };
  return {
    status: 200,
    headers: {
      'content-type': format.type,
      'cache-control': 'no-cache',
      'x-accel-buffering': 'no',
    },
    body: toEventStream(parts, hooks, format),
  };
}

/** Counts the tokens of a stream as its parts come. One without a usage counts as a token. */
export function counterOf(charge: RequestContext['charge']): (part: unknown) => void {
  let charged = 0;
  return (part) => {
    const total = usageOf(part) ? Math.max(charged, tokensOf(part)) : charged + 1;
    charge(total - charged);
    charged = total;
  };
}

function tokensOf(part: unknown): number {
  const { total_tokens, input_tokens = 0, output_tokens = 0 } = usageOf(part) ?? {};
  return total_tokens ?? input_tokens + output_tokens;
}

/** The first event of the messages API and the last one of the responses API have it in them, the last line of Ollama's the counts. */
function usageOf(part: unknown): Usage | null | undefined {
  const { usage, response, message, prompt_eval_count, eval_count } = part as {
    usage?: Usage | null;
    response?: { usage?: Usage | null };
    message?: { usage?: Usage | null };
    prompt_eval_count?: number;
    eval_count?: number;
  };
  if (eval_count !== undefined) return { input_tokens: prompt_eval_count ?? 0, output_tokens: eval_count };
  return usage ?? response?.usage ?? message?.usage;
}
