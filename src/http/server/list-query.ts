/** The query of a URL -> that of a list. */
import { validateJobListQuery, validateListQuery } from '../../protocol/index.ts';
import type { RequestContext } from './context.ts';

/** Which page. */
export function listQuery(context: RequestContext): ReturnType<typeof validateListQuery> {
  return validateListQuery(queryOf(context), { wire: true });
}

/** Which page of which jobs. */
export function jobQuery(context: RequestContext): ReturnType<typeof validateJobListQuery> {
  return validateJobListQuery(queryOf(context), { wire: true });
}

/** Its limit is a number. */
function queryOf({ request }: RequestContext): object {
  const { limit, ...query } = Object.fromEntries(request.url.searchParams);
  const count = limit !== undefined && /^\d{1,9}$/.test(limit) ? Number(limit) : limit;
  return { ...query, ...(limit === undefined ? {} : { limit: count }) };
}
