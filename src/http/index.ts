/**
 * The service over HTTP: as a handler for any server, as a server, and as a client.
 *
 * ```ts
 * import { createRuntime } from 'onpolicy';
 * import { serve } from 'onpolicy/http';
 *
 * const server = await serve(await createRuntime(), { port: 8080, tokens: ['secret'] });
 * ```
 * @module
 */
// A service -> HTTP -> the same service elsewhere. Reading order:
// server/  handler (one request from begin to end), routes, endpoints; then fetch (in this process), node and web (two kinds of servers), event-stream
// client/  connect, retrying-client, http-client, event-stream; then pool (several services as one)
export { connect } from './client/connect.ts';
export type { ConnectOptions } from './client/connect-options.ts';
export { createPool, type PoolOptions } from './client/pool.ts';
export { createFetch } from './server/fetch.ts';
export { createHandler, type Handler } from './server/handler.ts';
export type { AccessEntry, HandlerOptions, Scope, Servable, Token } from './server/handler-options.ts';
export { type ServeOptions, type Server, serve } from './server/serve.ts';
