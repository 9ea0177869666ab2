/** A completion request -> its response. Where the client has a limit on tokens, a stream says how many they are, also if it is not asked. */
import { AnswerStream } from '../../answer/index.ts';
import type { ChatCompletionRequest } from '../../protocol/index.ts';
import type { RequestContext } from './context.ts';
import { answerResponse, counterOf } from './stream-response.ts';
import type { WireResponse } from './wire.ts';

/** What requests of completions have in common. */
type Streamable = {
  readonly stream?: boolean | null | undefined;
  readonly stream_options?: ChatCompletionRequest['stream_options'];
};
type Chunk = { readonly usage?: unknown; readonly choices: readonly unknown[] };

/** Asks for the usage in every chunk: one may have several tokens, and the client may leave before the last. */
export async function answerCounted<Request extends Streamable>(
  request: Request,
  context: RequestContext,
  ask: (request: Request) => Promise<object>,
): Promise<WireResponse> {
  if (!context.isLimited || !request.stream) return answerResponse(await ask(request), context);
  const stream_options = { include_usage: true, continuous_usage_stats: true };
  const given = await ask({ ...request, stream_options });
  if (!(Symbol.asyncIterator in given)) return answerResponse(given, context); // by a service of the caller's
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

/** A chunk without the usage that the client has not asked for; null: there is nothing else in it. */
function shownOf(chunk: Chunk, { stream_options: asked }: Streamable): object | null {
  const { usage, ...rest } = chunk;
  const isLast = rest.choices.length === 0;
  if (!usage || (asked?.include_usage && (isLast || asked.continuous_usage_stats))) return chunk;
  return isLast ? null : rest;
}
