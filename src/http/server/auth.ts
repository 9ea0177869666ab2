/** A request -> its client: the scopes that its token, or its origin on this machine, allows, and what it may do in a minute. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { OnpolicyError } from '../../errors.ts';
import type { Scope } from '../../protocol/index.ts';
import type { HandlerSettings } from './handler-options.ts';
import { ClientLimits } from './token-limits.ts';
import type { WireRequest } from './wire.ts';

export type Client = {
  readonly scopes: readonly Scope[];
  /** The same for all requests of one client, also of another server with the same token. */
  readonly key: string;
  /** Null: none. */
  readonly limits: ClientLimits | null;
};

/** Returns the client of a request. Throws `UNAUTHORIZED` without a known token. */
export type Authorizer = (request: WireRequest) => Client;

/** Whether scopes include one of `wanted`; `admin` includes all. */
export function allows(scopes: readonly Scope[], wanted: readonly Scope[]): boolean {
  return scopes.includes('admin') || wanted.some((scope) => scopes.includes(scope));
}

/** Whether a host name or address is this machine's own. */
export function isLoopback(host: string): boolean {
  return /^(localhost|(.*\.)?localhost|127(\.\d{1,3}){3}|\[?::1\]?|\[?::ffff:127(\.\d{1,3}){3}\]?)$/i.test(
    host,
  );
}

/** Makes the check of requests. Tokens are compared in constant time. */
export function createAuthorizer({ tokens, allowAnonymous, corsOrigins }: HandlerSettings): Authorizer {
  const known = tokens.map(({ token, scopes, ...limits }) => {
    const digest = digestOf(token);
    const key = `token ${digest.toString('hex', 0, 8)}`;
    return { digest, client: { scopes, key, limits: new ClientLimits(limits, performance.now()) } };
  });
  if (known.length > 0)
    return (request) => {
      const bearer = /^Bearer +(\S.*?) *$/i.exec(request.header('authorization') ?? '')?.[1];
      const given = bearer ?? request.header('x-api-key') ?? undefined; // the latter as Anthropic's client sends it
      if (given === undefined) throw new OnpolicyError('UNAUTHORIZED', 'a Bearer token is required');
      const digest = digestOf(given);
      let client: Client | null = null;
      for (const entry of known) if (timingSafeEqual(entry.digest, digest)) client = entry.client;
      if (client === null) throw new OnpolicyError('UNAUTHORIZED', 'the token is not known');
      return client;
    };
  return (request) => {
    const { url, address } = request;
    if (!allowAnonymous && !(isLoopback(url.hostname) && isLoopback(address ?? url.hostname)))
      throw new OnpolicyError(
        'UNAUTHORIZED',
        'without tokens only clients on this machine are served; give the server tokens, or allowAnonymous',
      );
    refuseForeignPage(request, corsOrigins);
    return { scopes: ['admin'], key: `address ${address ?? 'unknown'}`, limits: null };
  };
}

/** Without tokens, a page of another site could send requests from the user's own browser. */
function refuseForeignPage({ header, url }: WireRequest, corsOrigins: readonly string[]): void {
  const origin = header('origin');
  if (origin === null || origin === url.origin || corsOrigins.includes(origin) || corsOrigins.includes('*'))
    return;
  throw new OnpolicyError('FORBIDDEN', 'pages of other origins are not served; see the option corsOrigins');
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
