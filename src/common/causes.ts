/** A failure of the network -> what it comes from, and whether anything was sent. */

/** Codes of failures before the first byte was sent. */
const NOT_SENT: readonly string[] = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
];

/** The errors that an error comes from, at most five or so. */
export function causes(error: unknown): unknown[] {
  const found: unknown[] = [];
  for (let cause = (error as Error | null)?.cause; cause && found.length < 5; cause = (cause as Error).cause)
    found.push(cause, ...((cause as AggregateError).errors ?? []));
  return found;
}

/** The codes of an error and of those that it comes from. */
export function causeCodes(error: unknown): string[] {
  return [error, ...causes(error)].map((cause) => String((cause as { code?: unknown } | null)?.code));
}

/** Whether a call failed before the other side can have received it. */
export function neverSent(error: unknown): boolean {
  const codes = causeCodes(error);
  return NOT_SENT.some((code) => codes.includes(code));
}
