/** Types of requests without faults. Only the checks in this folder create them. */
import type { LogRequest } from './generated/request-types.ts';

declare const checked: unique symbol;

export type Checked<Request> = Request & { readonly [checked]: true };

/** A checked log request with its split filled in. */
export type CheckedLogRequest = Checked<LogRequest> & { readonly split: string };
