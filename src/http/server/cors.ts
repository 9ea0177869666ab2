/** A request's origin -> CORS headers. By default no other origin may call. */
import type { WireRequest, WireResponse } from './wire.ts';

/** CORS headers of a response; none for an origin that is not allowed. */
export function corsHeaders({ header }: WireRequest, origins: readonly string[]): Record<string, string> {
  const origin = header('origin');
  if (origin === null || origins.length === 0) return {};
  if (!origins.includes('*') && !origins.includes(origin)) return { vary: 'Origin' };
  return {
    'access-control-allow-origin': origins.includes('*') ? '*' : origin,
    'access-control-expose-headers': 'X-Request-Id, X-Error-Code, X-Ignored-Fields',
    vary: 'Origin',
  };
}

export function preflight(
  request: WireRequest,
  methods: readonly string[],
  origins: readonly string[],
): WireResponse {
  const allow = methods.join(', ');
  const isAllowed = 'access-control-allow-origin' in corsHeaders(request, origins);
  const headers = {
    'access-control-allow-methods': allow,
    'access-control-allow-headers': request.header('access-control-request-headers') ?? '*',
    'access-control-max-age': '600',
  };
  return { status: 204, headers: { allow, ...(isAllowed ? headers : {}) }, body: '' };
}
