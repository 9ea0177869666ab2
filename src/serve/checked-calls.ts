/** A request that was checked in this process -> a call of a service's method. A facade's own method does not check it again. */
import {
  type AnyMethod,
  type CallArguments,
  findMethod,
  METHODS,
  type MethodName,
} from '../protocol/service/index.ts';

/**
 * Checked requests on their way to a method of a facade. A mark is set for one call and removed when the method begins. No code of the
 * caller runs in between, so a request that changes later has lost its mark.
 */
const marked = new WeakSet<object>();

/** Methods of facades, which call {@link takeMark} on their request. */
const takers = new WeakSet<AnyMethod>();

/** Declares a method that calls {@link takeMark} first. */
export function taker(method: AnyMethod): AnyMethod {
  takers.add(method);
  return method;
}

/** Returns true if a request comes from {@link callChecked}, and removes its mark: a second call returns false. */
export function takeMark(request: unknown): boolean {
  return marked.delete(request as object);
}

/** Calls a method. A facade's own method checks the request, as that of any other caller. */
export function callMethod(service: object, name: MethodName, ...args: CallArguments): unknown {
  const { owner, method } = findMethod(service, name)!;
  return Reflect.apply(method, owner, args);
}

/** Calls a method with a checked request. A method that is not a facade's own, such as a wrapper's, checks it again. */
export function callChecked(service: object, name: MethodName, ...args: CallArguments): unknown {
  const { owner, method } = findMethod(service, name)!;
  const request = args[METHODS[name].args.length - 1];
  if (!takers.has(method) || typeof request !== 'object' || request === null)
    return Reflect.apply(method, owner, args);
  marked.add(request);
  try {
    return Reflect.apply(method, owner, args);
  } finally {
    marked.delete(request);
  }
}

/** Returns true if a service has a method. A facade defines every method, so its `has` decides. */
export function hasMethod(service: object, name: MethodName): boolean {
  const found = findMethod(service, name);
  if (!found || !takers.has(found.method)) return found !== null;
  return (service as { has?(name: MethodName): boolean }).has?.(name) !== false;
}
