/**
 * A completion request -> its response. If the client has a limit on tokens, the tokens of a stream are counted, also if the request asks
 * for no usage.
 */

import type { ChatCompletionRequest } from '../../../protocol/index.ts';
import { AnswerStream } from '../../../protocol/service/index.ts';
import type { RequestContext } from './context.ts';
import { answerResponse, counterOf } from './stream-response.ts';
import type { ServedResponse } from './wire.ts';

/** Fields that all completion requests share. */
type Streamable = {
  readonly stream?: boolean | null | undefined;
  readonly stream_options?: ChatCompletionRequest['stream_options'];
};
type Chunk = { readonly usage?: unknown; readonly choices: readonly unknown[] };

/**
 * Answers a request and counts its tokens. Asks for the usage in every chunk, because a chunk may have several tokens and the client may
 * leave before the last one.
 */
export async function answerCounted<Request extends Streamable>(
  request: Request,
  context: RequestContext,
  ask: (request: Request) => Promise<object>,
): Promise<ServedResponse> {
  if (!context.isLimited || !request.stream) return answerResponse(await ask(request), context);
  const stream_options = { include_usage: true, continuous_usage_stats: true };
  const given = await ask({ ...request, stream_options });
  if (!(Symbol.asyncIterator in given)) return answerResponse(given, context); // a caller's own service may ignore `stream`
  const answer = given as AnswerStream<Chunk>;
  const count = counterOf(context.charge);
  const chunks = async function* () {
    for await (const chunk of answer) {
      count(chunk);
      const shown = shownOf(chunk, request);
      if (shown) yield shown;
    }
  };
  const shown = new AnswerStream(chunks(), () => answer.abort(), answer.idleParts);
  return answerResponse(shown, { ...context, charge: () => {} });
}

/** Removes the usage that the client has not asked for from a chunk. Returns null if the chunk has nothing else. */
function shownOf(chunk: Chunk, { stream_options: asked }: Streamable): object | null {
  const { usage, ...rest } = chunk;
  const isLast = rest.choices.length === 0;
  if (!usage || (asked?.include_usage && (isLast || asked.continuous_usage_stats))) return chunk;
  return isLast ? null : rest;
}
