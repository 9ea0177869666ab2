/** A request -> its client: the scopes that its token, or its origin on this machine, allows, and its limits per minute. */
import { createHash, timingSafeEqual } from 'node:crypto';
import { OnpolicyError } from '../../../errors.ts';
import type { Scope } from '../../../protocol/index.ts';
import type { HandlerSettings } from './handler-options.ts';
import { ClientLimits } from './token-limits.ts';
import type { ServedRequest } from './wire.ts';

export type Client = {
  readonly scopes: readonly Scope[];
  /** Identifies the client. The key is the same for all its requests, also at another server with the same token. */
  readonly key: string;
  /** Limits of the client. Null if it has none. */
  readonly limits: ClientLimits | null;
};

export type Authorizer = {
  /** Returns the client of a request. Throws `UNAUTHORIZED` without a known token. */
  readonly clientOf: (request: ServedRequest, url: URL) => Client;
  /** Returns the limits of the client with this key, or null if it has none or its token is no longer known. */
  readonly limitsOf: (key: string) => ClientLimits | null;
};

/** Returns true if the scopes include one of `wanted`. `admin` includes every scope. */
export function allows(scopes: readonly Scope[], wanted: readonly Scope[]): boolean {
  return scopes.includes('admin') || wanted.some((scope) => scopes.includes(scope));
}

/** Returns true if a host name or address belongs to the loopback interface. */
export function isLoopback(host: string): boolean {
  return /^(localhost|(.*\.)?localhost|127(\.\d{1,3}){3}|\[?::1\]?|\[?::ffff:127(\.\d{1,3}){3}\]?)$/i.test(
    host,
  );
}

/** Creates the check of requests. Tokens are compared in constant time. */
export function createAuthorizer({ tokens, allowAnonymous, corsOrigins }: HandlerSettings): Authorizer {
  const known = tokens.map(({ token, scopes, ...limits }) => {
    const digest = digestOf(token);
    const key = `token ${digest.toString('hex', 0, 8)}`;
    return { digest, client: { scopes, key, limits: new ClientLimits(limits, performance.now()) } };
  });
  const limitsOf = (key: string): ClientLimits | null =>
    known.find(({ client }) => client.key === key)?.client.limits ?? null;
  if (known.length > 0) {
    const clientOf = (request: ServedRequest): Client => {
      const bearer = /^Bearer +(\S.*?) *$/i.exec(request.headers.get('authorization') ?? '')?.[1];
      const given = bearer ?? request.headers.get('x-api-key') ?? undefined; // Anthropic's client sends `x-api-key`
      if (given === undefined) throw new OnpolicyError('UNAUTHORIZED', 'a Bearer token is required');
      const digest = digestOf(given);
      let client: Client | null = null;
      for (const entry of known) if (timingSafeEqual(entry.digest, digest)) client = entry.client;
      if (client === null) throw new OnpolicyError('UNAUTHORIZED', 'the token is not known');
      return client;
    };
    return { clientOf, limitsOf };
  }
  const clientOf = (request: ServedRequest, url: URL): Client => {
    const { address } = request;
    if (!allowAnonymous && !(isLoopback(url.hostname) && isLoopback(address ?? url.hostname)))
      throw new OnpolicyError(
        'UNAUTHORIZED',
        'without tokens only clients on this machine are served; give the server tokens, or allowAnonymous',
      );
    refuseForeignPage(request, url, corsOrigins);
    return { scopes: ['admin'], key: `address ${address ?? 'unknown'}`, limits: null };
  };
  return { clientOf, limitsOf };
}

/** Throws `FORBIDDEN` for a page of another origin. Without tokens, such a page could send requests from the user's own browser. */
function refuseForeignPage({ headers }: ServedRequest, url: URL, corsOrigins: readonly string[]): void {
  const origin = headers.get('origin');
  if (origin === null || origin === url.origin || corsOrigins.includes(origin) || corsOrigins.includes('*'))
    return;
  throw new OnpolicyError('FORBIDDEN', 'pages of other origins are not served; see the option corsOrigins');
}

/**
 * Returns the call options that identify a client. With tokens, a cache salt keeps the cached prefixes of clients apart, unless
 * `sharePrefixCache` is set.
 */
export function callerOf(
  clientKey: string,
  { tokens, sharePrefixCache }: Pick<HandlerSettings, 'tokens' | 'sharePrefixCache'>,
): { readonly clientKey: string; readonly cacheSalt?: string } {
  return tokens.length === 0 || sharePrefixCache ? { clientKey } : { clientKey, cacheSalt: clientKey };
}

function digestOf(token: string): Buffer {
  return createHash('sha256').update(token).digest();
}
