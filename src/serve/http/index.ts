/// <reference types="node" preserve="true" />
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
// resource-rows  the endpoints of models, checkpoints, training jobs and runs, which both sides are made of
// server/  handler (one request from begin to end), routes, endpoints; then fetch (in this process), node and web (two kinds of servers), event-stream
// client/  connect, retrying-client, http-client, event-stream; then pool (several services as one)

export type {
  AccessEntry,
  ConnectOptions,
  HandlerOptions,
  PoolOptions,
  Scope,
  ServeOptions,
  Token,
} from '../../protocol/index.ts';
export { connect } from './client/connect.ts';
export { createPool } from './client/pool.ts';
export { createFetch } from './server/fetch.ts';
export { createHandler, type Handler } from './server/handler.ts';
export type { Servable } from './server/handler-options.ts';
export { type Server, serve } from './server/serve.ts';
