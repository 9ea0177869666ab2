/** Helpers of the handler's tests: a handler over a service in memory, and requests to it. */
import { createHandler, type Handler, type HandlerOptions } from '../../../src/serve/http/index.ts';
import {
  createMemoryService,
  type MemoryService,
  type MemoryServiceOptions,
} from '../../fakes/memory-service.ts';

/** A small request. */
export const HELLO = { messages: [{ role: 'user', content: 'Hello there' }] };

/** The answer of a handler. */
export type Answer = { readonly status: number; readonly headers: Headers; readonly body: unknown };

/** Asks a handler; the body is parsed if it is JSON. */
export async function ask(
  handler: Handler,
  method: string,
  path: string,
  { body, headers, signal }: { body?: unknown; headers?: Record<string, string>; signal?: AbortSignal } = {},
): Promise<Answer> {
  const response = await handler(
    new Request(`http://localhost${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    }),
  );
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json');
  return {
    status: response.status,
    headers: response.headers,
    body: isJson && text ? JSON.parse(text) : text,
  };
}

/** A handler over a service in memory. */
export function openHandler(
  options: HandlerOptions = {},
  memory: MemoryServiceOptions = {},
): { handler: Handler; service: MemoryService } {
  const service = createMemoryService(memory);
  return { handler: createHandler(service, options), service };
}
