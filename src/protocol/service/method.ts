/** The type of a row in the table of methods. */
import { type ChatRequestOptions, checkOf, type RequestName, type Scope } from '../index.ts';

/** Arguments of a call: those that the table names, then the options of the call. */
export type CallArguments = readonly unknown[];

/** Fields that decide whether repeating a request has a further effect. */
type Repeated = { readonly return_existing?: unknown; readonly idempotency_key?: unknown };

/** The properties of a method. */
export type Method = {
  /** Its arguments before the options of the call. `check` checks the last one. */
  readonly args: readonly ('id' | 'operation' | 'request' | 'query' | 'settings')[];
  /** Name of the feature in errors of services that lack the method. */
  readonly what: string;
  /** Schema of its request over HTTP: of the body, or of the query of a `GET`. */
  readonly schema?: RequestName;
  /** Throws `INVALID_REQUEST` with all faults. Returns the request with its defaults, if it has any. */
  readonly check?: (input: unknown, options?: ChatRequestOptions) => object;
  /** Its endpoint, and the scope that a token needs. `{id}` and `{operation}` stand for arguments. */
  readonly http?: readonly [method: 'GET' | 'POST' | 'DELETE', path: `/${string}`, scope: Scope];
  /** Its description in the list of endpoints in docs/serving.md. */
  readonly docs?: string;
  /** Replaces values of a request that exist only in the caller's process, before it is checked. */
  readonly translate?: <Request>(request: Request) => Request;
  /** Completes its answer in the caller's process. */
  readonly complete?: (answer: never, request: unknown) => unknown;
  /** The class of its answer if the request has `stream: true`. */
  readonly Stream?: new (
    parts: AsyncIterator<never>,
    stop: () => void,
  ) => object;
  /** True if its answer generates tokens, also without a `Stream`. */
  readonly answers?: true;
  /** Returns true if a second `POST` of the same request has no further effect. A `GET` never has one. */
  readonly repeats?: (request: Repeated) => boolean;
  /** Returns the reference of the model that it uses. The method runs in the process of that model. */
  readonly model?: (args: CallArguments) => unknown;
  /** True if its calls wait in the queue of that model, which may be full. */
  readonly isQueued?: true;
  /** True if the method runs in the process that writes to the home folder, because it writes there or uses that process's state. */
  readonly atHome?: true;
};

/** Reads the first argument of a call. */
export const first = ([given]: CallArguments): unknown => given;
/** Reads a field of an argument. */
export const field =
  (index: number, name: string) =>
  (args: CallArguments): unknown =>
    (args[index] as Record<string, unknown> | null | undefined)?.[name];
export const always = (): boolean => true;

/** Returns the schema and the check of a request. */
export const checked = <const Name extends RequestName, Check>(schema: Name, check: Check) => ({
  schema,
  check,
});

/** Returns the schema of a request that has no rules beside it, and its check. */
export const checkedBy = <const Name extends Parameters<typeof checkOf>[0]>(name: Name) =>
  checked(name, checkOf(name));
