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
export { connect } from './connect.ts';
export type { ConnectOptions } from './connect-options.ts';
export { createHandler, type Handler } from './handler.ts';
export type { HandlerOptions, Scope, Servable, Token } from './options.ts';
export { createPool, type PoolOptions } from './pool.ts';
export { type ServeOptions, type Server, serve } from './serve.ts';
