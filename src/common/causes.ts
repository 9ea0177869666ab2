/** A network error -> its causes, and if anything was sent. */

/** Codes of errors that occur before the first byte is sent. */
const NOT_SENT: readonly string[] = [
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'UND_ERR_CONNECT_TIMEOUT',
];

/** Returns the chain of causes of an error, at most about five. */
export function causes(error: unknown): unknown[] {
  const found: unknown[] = [];
  for (let cause = (error as Error | null)?.cause; cause && found.length < 5; cause = (cause as Error).cause)
    found.push(cause, ...((cause as AggregateError).errors ?? []));
  return found;
}

/** Returns the codes of an error and of its causes. */
export function causeCodes(error: unknown): string[] {
  return [error, ...causes(error)].map((cause) => String((cause as { code?: unknown } | null)?.code));
}

/** Returns true if a call failed before the other side can have received it. */
export function neverSent(error: unknown): boolean {
  const codes = causeCodes(error);
  return NOT_SENT.some((code) => codes.includes(code));
}
