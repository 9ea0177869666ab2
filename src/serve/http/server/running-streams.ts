/** Streams of chats while they run -> the one with an id, for requests that act on it. */
import type { ChatCompletionChunk } from '../../../protocol/index.ts';
import { AnswerStream, ChatCompletionStream } from '../../../protocol/service/index.ts';

export class RunningStreams {
  readonly #byId = new Map<string, { readonly stream: ChatCompletionStream; readonly clientKey: string }>();

  /** Returns an answer; a stream can be found by its id from its first chunk to its last one. */
  keep(answer: object, clientKey: string): object {
    if (!(answer instanceof ChatCompletionStream)) return answer;
    // Another stream of chats would join all chunks a second time.
    return new AnswerStream(this.#watched(answer, clientKey), () => answer.abort(), answer.idleParts);
  }

  /** Returns the running stream of this client, or null. */
  find(id: string, clientKey: string): ChatCompletionStream | null {
    const found = this.#byId.get(id);
    return found && found.clientKey === clientKey ? found.stream : null;
  }

  async *#watched(
    stream: ChatCompletionStream,
    clientKey: string,
  ): AsyncGenerator<ChatCompletionChunk, void, undefined> {
    let known: string | null = null;
    try {
      for await (const chunk of stream) {
        if (known === null) this.#byId.set(chunk.id, { stream, clientKey });
        known ??= chunk.id;
        yield chunk;
      }
    } finally {
      if (known !== null) this.#byId.delete(known);
    }
  }
}
