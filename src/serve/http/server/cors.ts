/** A request's origin -> CORS headers. By default no other origin may call. */
import type { ServedRequest, ServedResponse } from './wire.ts';

/** Returns the CORS headers of a response. `vary`: the header `Vary` that the response has without them. */
export function corsHeaders(
  { headers }: ServedRequest,
  origins: readonly string[],
  vary?: string,
): Record<string, string> {
  const origin = headers.get('origin');
  if (origin === null || origins.length === 0) return {};
  const varies = { vary: vary === undefined ? 'Origin' : `${vary}, Origin` };
  if (!origins.includes('*') && !origins.includes(origin)) return varies;
  return {
    'access-control-allow-origin': origins.includes('*') ? '*' : origin,
    'access-control-expose-headers': 'X-Request-Id, X-Error-Code, X-Ignored-Fields',
    ...varies,
  };
}

export function preflight(
  request: ServedRequest,
  methods: readonly string[],
  origins: readonly string[],
): ServedResponse {
  const allow = methods.join(', ');
  const isAllowed = 'access-control-allow-origin' in corsHeaders(request, origins);
  const headers = {
    'access-control-allow-methods': allow,
    'access-control-allow-headers': request.headers.get('access-control-request-headers') ?? '*',
    'access-control-max-age': '600',
  };
  return { status: 204, headers: { allow, ...(isAllowed ? headers : {}) }, body: '' };
}
