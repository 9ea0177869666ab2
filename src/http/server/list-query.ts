/** The query of a URL -> which page of a list is wanted. */
import { validateListQuery } from '../../protocol/index.ts';
import type { RequestContext } from './context.ts';

/** Of any list. */
export function listQuery(context: RequestContext): ReturnType<typeof validateListQuery> {
  return validateListQuery(queryOf(context), { wire: true });
}

/** The query of a URL, its limit as a number. */
export function queryOf({ request }: RequestContext): object {
  const { limit, ...query } = Object.fromEntries(request.url.searchParams);
  const count = limit !== undefined && /^\d{1,9}$/.test(limit) ? Number(limit) : limit;
  return { ...query, ...(limit === undefined ? {} : { limit: count }) };
}
