/** A method of a service's resource -> the endpoint that calls it. */
import type { Service } from '../../service.ts';
import type { ResourceName, ResourceRow } from '../resource-rows.ts';
import { type EndpointHandler, queryOf, type RequestContext, unsupported } from './context.ts';
import { json } from './wire.ts';

export function resourceEndpoint([resource, name, method, path, , check]: ResourceRow): EndpointHandler {
  return async (context) => {
    const { id, call, validation } = context;
    const args: unknown[] = path.includes('{id}') ? [id] : [];
    if (check && method === 'GET') args.push(check(queryOf(context), { wire: true }));
    else if (check) args.push(check(await context.body(), validation));
    const owner = resourceOf(context, resource) as object as Record<string, (...args: unknown[]) => unknown>;
    return json(await owner[name]!(...args, call));
  };
}

/** A resource of the service. Throws `UNSUPPORTED` if the service has none. */
export function resourceOf<Name extends ResourceName>(
  { service }: RequestContext,
  name: Name,
): NonNullable<Service[Name]> {
  const resource = service[name] as Service[Name] | undefined;
  if (!resource) throw unsupported(name === 'trainingRuns' ? 'training runs' : 'models that are trained');
  return resource;
}
