/** A method whose door checks requests -> what it does after its door, for requests that were checked in this process. */
import type {
  ChatCompletionRequest,
  EmbeddingRequest,
  LogRequest,
  TextCompletionRequest,
  TrainingJobRequest,
} from './generated/request-types.ts';

declare const checked: unique symbol;

/** A request without faults. Only the doors of this folder make it. */
export type Checked<Request> = Request & { readonly [checked]: true };

/** A checked log request with its split filled in. */
export type CheckedLogRequest = Checked<LogRequest> & { readonly split: string };

type CheckedArgument<Argument> = Argument extends ChatCompletionRequest
  ? Checked<ChatCompletionRequest>
  : Argument extends TextCompletionRequest
    ? Checked<TextCompletionRequest>
    : Argument extends EmbeddingRequest
      ? Checked<EmbeddingRequest>
      : Argument extends TrainingJobRequest
        ? Checked<TrainingJobRequest>
        : Argument extends LogRequest
          ? CheckedLogRequest
          : Argument;

/** The same method after its door: its request is checked. */
export type AfterDoor<This, Method> = Method extends (...args: infer Args) => infer Result
  ? (this: This, ...args: { [Index in keyof Args]: CheckedArgument<Args[Index]> }) => Result
  : never;

const parts = new WeakMap<object, unknown>(); // by method

/** Says what a method of this library does after its door. */
export function splitAtDoor<This, Method extends object>(
  method: Method,
  after: AfterDoor<This, Method>,
): void {
  parts.set(method, after);
}

/**
 * What a method does after its door. For methods that are not registered, such as wrappers of this library's, it is the
 * method itself, with its door.
 */
export function afterDoor<Method extends object>(method: Method): AfterDoor<unknown, Method> {
  return (parts.get(method) ?? method) as AfterDoor<unknown, Method>;
}

/** Whether the door of a method can be left out. */
export function hasKnownDoor(method: object): boolean {
  return parts.has(method);
}
