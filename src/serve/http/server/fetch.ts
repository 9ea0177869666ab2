/** A service -> a `fetch` that it answers in this process. Clients of HTTP APIs then need no port. */

import type { HandlerOptions } from '../../../protocol/index.ts';
import { createHandler } from './handler.ts';
import type { Servable } from './handler-options.ts';

/** Limits of a server do not apply, because the caller shares the service's process. */
const IN_PROCESS: HandlerOptions = {
  allowAnonymous: true,
  corsOrigins: ['*'],
  maxLogprobs: null,
  maxBodyBytes: Number.MAX_SAFE_INTEGER,
  maxChoices: Number.MAX_SAFE_INTEGER,
  maxMessages: Number.MAX_SAFE_INTEGER,
  maxTrajectories: Number.MAX_SAFE_INTEGER,
};

/**
 * Creates a `fetch` for the clients of OpenAI's and Anthropic's APIs, in place of the global one: `new OpenAI({ fetch, baseURL, apiKey })`.
 * It opens no port. Any API key works, and any base URL, which ends with `/v1` for OpenAI's client. `runtime.fetch` is the same for a
 * runtime. Without options only the limits of the service apply.
 * @throws OnpolicyError `INVALID_REQUEST` for wrong options
 */
export function createFetch(service: Servable, options: HandlerOptions = {}): typeof globalThis.fetch {
  const handler = createHandler(service, { ...IN_PROCESS, ...options });
  return async (input, init) => {
    const request = new Request(input, init);
    const { signal } = request;
    const response = await handler(request);
    signal.throwIfAborted();
    if (!response.body) return response;
    return new Response(response.body.pipeThrough(new TransformStream(), { signal }), response);
  };
}
