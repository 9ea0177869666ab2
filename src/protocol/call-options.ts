/** Options of a call -> the same options, checked. */
import { fault, throwFaults } from './faults.ts';
import { TRACE_ID } from './schemas/http.ts';
import { checkArguments } from './validate.ts';

const traceId = new RegExp(TRACE_ID);

/** Returns true if a value can be sent as the id of a request in a header. */
export function isTraceId(value: unknown): value is string {
  return typeof value === 'string' && traceId.test(value);
}

/** Checks the options of a call. Throws `INVALID_REQUEST` with all faults. */
export function checkCallOptions(options: unknown): void {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null)
    throwFaults([fault(['options'], 'type', 'an object', options)]);
  checkArguments('CallOptions', options, ['options']);
}
