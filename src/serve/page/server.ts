/** Requests of the page -> those of its server, with the token of the user. */
import { createParser } from 'eventsource-parser';
import type { ChatCompletionChunk, ChatCompletionRequest } from '../../protocol/index.ts';

/** A model of the list, with what the page needs to know about it. */
export type ListedModel = { readonly id: string; readonly max_model_len: number | null };

/** Asks the server that the page came from. */
export class PageServer {
  readonly #askToken: () => Promise<string>;
  #token: string | null;

  /**
   * @param token what the user gave before
   * @param askToken asks the user for a token, whenever the server wants another one
   */
  constructor(token: string | null, askToken: () => Promise<string>) {
    this.#token = token;
    this.#askToken = askToken;
  }

  async models(): Promise<readonly ListedModel[]> {
    const response = await this.#fetch('v1/models', {});
    return ((await response.json()) as { data: ListedModel[] }).data;
  }

  /** Returns true if a model reads images. */
  async seesImages(model: string): Promise<boolean> {
    const response = await this.#fetch('api/show', { body: { model } });
    const { capabilities } = (await response.json()) as { capabilities: readonly string[] };
    return capabilities.includes('vision');
  }

  /** Answers a request in chunks. */
  async *answer(request: ChatCompletionRequest, signal: AbortSignal): AsyncGenerator<ChatCompletionChunk> {
    const response = await this.#fetch('v1/chat/completions', { body: { ...request, stream: true }, signal });
    const found: string[] = [];
    const parser = createParser({ onEvent: ({ data }) => void found.push(data) });
    const decoder = new TextDecoder();
    const reader = response.body!.getReader();
    let isComplete = false;
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      parser.feed(decoder.decode(part.value, { stream: true }));
      for (const data of found.splice(0)) {
        if (data === '[DONE]') isComplete = true;
        else yield chunkOf(data);
      }
    }
    if (!isComplete) throw new Error('The connection ended before the answer did.');
  }

  /** Sends a request. Asks for a token while the server refuses the one that it gets. */
  async #fetch(path: string, { body, signal }: { body?: object; signal?: AbortSignal }): Promise<Response> {
    for (;;) {
      const response = await fetch(path, {
        headers: {
          ...(body ? { 'content-type': 'application/json' } : {}),
          ...(this.#token === null ? {} : { authorization: `Bearer ${this.#token}` }),
        },
        ...(body ? { method: 'POST', body: JSON.stringify(body) } : {}),
        ...(signal ? { signal } : {}),
      }).catch((error: Error) => {
        if (signal?.aborted) throw error;
        throw new Error('The server cannot be reached.');
      });
      if (response.ok) return response;
      if (response.status !== 401) throw new Error(await reasonOf(response));
      this.#token = await this.#askToken();
      signal?.throwIfAborted();
    }
  }
}

type ErrorBody = { readonly error?: { readonly message?: string } | string };

/** Returns the chunk of an event. Throws the error of a stream that failed. */
function chunkOf(data: string): ChatCompletionChunk {
  const value = JSON.parse(data) as ChatCompletionChunk & ErrorBody;
  if (value.error) throw new Error(messageOf(value) ?? 'The answer failed.');
  return value;
}

async function reasonOf(response: Response): Promise<string> {
  const body = (await response.json().catch(() => ({}))) as ErrorBody;
  return messageOf(body) ?? `The server answered ${response.status}.`;
}

function messageOf({ error }: ErrorBody): string | undefined {
  return typeof error === 'string' ? error : error?.message;
}
