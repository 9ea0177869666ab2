/** The name of a method -> its function in a service. */
import { type MethodName, methods } from './methods.ts';

/** Method name -> its resource in a service, null for the service itself, and its name there. */
const PLACES = new Map(
  methods.map(([name]): [MethodName, readonly [group: string | null, own: string]] => {
    const [group, own] = name.split('.');
    return [name, own === undefined ? [null, name] : [group!, own]];
  }),
);

/** A function with the arguments and the answer of its method. */
export type AnyMethod = (this: never, ...args: unknown[]) => unknown;

/** Returns the methods of a resource, each with its name in the resource. */
export function methodsOf(resource: string): readonly (readonly [own: string, name: MethodName])[] {
  return [...PLACES].flatMap(([name, [group, own]]) => (group === resource ? [[own, name] as const] : []));
}

/** Returns a method and the object that has it: the service, or one of its resources. Null if the service lacks the method. */
export function findMethod(
  service: object,
  name: MethodName,
): { readonly owner: object; readonly method: AnyMethod } | null {
  const [group, own] = PLACES.get(name)!;
  const owner = (group === null ? service : (service as Readonly<Record<string, unknown>>)[group]) as
    | Readonly<Record<string, AnyMethod | undefined>>
    | undefined;
  const method = owner?.[own];
  return method ? { owner: owner!, method } : null;
}
