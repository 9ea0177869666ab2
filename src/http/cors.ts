/** Who else's pages may call from a browser: nobody, unless the options say so. */

/** Headers of an answer to a page of an allowed origin. */
export function corsHeaders(request: Request, origins: readonly string[]): [string, string][] {
  const origin = request.headers.get('origin');
  if (origin === null || origins.length === 0) return [];
  if (!origins.includes('*') && !origins.includes(origin)) return [['vary', 'Origin']];
  return [
    ['access-control-allow-origin', origins.includes('*') ? '*' : origin],
    ['access-control-expose-headers', 'X-Request-Id, X-Error-Code'],
    ['vary', 'Origin'],
  ];
}

/** The answer to a browser that asks whether it may ask. */
export function preflight(
  request: Request,
  methods: readonly string[],
  origins: readonly string[],
): Response {
  const allow = methods.join(', ');
  const isAllowed = corsHeaders(request, origins).some(([name]) => name === 'access-control-allow-origin');
  const headers = {
    'access-control-allow-methods': allow,
    'access-control-allow-headers': request.headers.get('access-control-request-headers') ?? '*',
    'access-control-max-age': '600',
  };
  return new Response(null, { status: 204, headers: { allow, ...(isAllowed ? headers : {}) } });
}
