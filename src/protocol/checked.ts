/** Requests without faults, as types. Only the checks of this folder make them. */
import type { LogRequest } from './generated/request-types.ts';

declare const checked: unique symbol;

export type Checked<Request> = Request & { readonly [checked]: true };

/** A checked log request with its split filled in. */
export type CheckedLogRequest = Checked<LogRequest> & { readonly split: string };
