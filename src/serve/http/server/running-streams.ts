/** Streams of chats and responses while they run -> the one with an id, for requests that act on it. */
import { watched } from '../../../common/index.ts';
import type { ResponseObject, ResponseStreamEvent } from '../../../protocol/index.ts';
import { AnswerStream, ChatCompletionStream } from '../../../protocol/service/index.ts';
import type { ResponseStream } from '../../wires/index.ts';

/** A stream, and the client that reads it. */
type Running<Stream> = { readonly stream: Stream; readonly clientKey: string };
type RunningResponse = Running<ResponseStream> & { readonly response: ResponseObject };

export class RunningStreams {
  readonly #chats = new Map<string, Running<ChatCompletionStream>>();
  readonly #responses = new Map<string, RunningResponse>();

  /** Returns an answer; a stream of chats can be found by its id from its first chunk to its last one. */
  keep(answer: object, clientKey: string): object {
    if (!(answer instanceof ChatCompletionStream)) return answer;
    const chunks = watched(answer, this.#chats, ({ id }) => [id, { stream: answer, clientKey }]);
    // Another stream of chats would join all chunks a second time.
    return new AnswerStream(chunks, () => answer.abort(), answer.idleParts);
  }

  /** Returns the events of a response, which can be found by its id while it runs. */
  keepResponse(stream: ResponseStream, clientKey: string): AnswerStream<ResponseStreamEvent> {
    const events = watched(stream, this.#responses, (event) =>
      event.type === 'response.created'
        ? [event.response.id, { stream, clientKey, response: event.response }]
        : null,
    );
    return new AnswerStream(events, () => stream.abort(), stream.idleParts);
  }

  /** Returns the running stream of this client, or null. */
  find(id: string, clientKey: string): ChatCompletionStream | null {
    const found = this.#chats.get(id);
    return found?.clientKey === clientKey ? found.stream : null;
  }

  /** Ends the running response of this client, and returns it as it began. Null if none has this id. */
  cancelResponse(id: string, clientKey: string): ResponseObject | null {
    const found = this.#responses.get(id);
    if (found?.clientKey !== clientKey) return null;
    found.stream.abort();
    return found.response;
  }
}
