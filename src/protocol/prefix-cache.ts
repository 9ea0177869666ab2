/** The query of a reset of prefix caches -> the checked query. */
import { errorAt } from '../errors.ts';
import { checkRequest, type ValidationOptions } from './validate.ts';

/** Checks the query of a reset of prefix caches. No input means the defaults. */
export function checkPrefixCacheQuery(input: unknown, options: ValidationOptions = {}) {
  const query = checkRequest('PrefixCacheQuery', input ?? {}, options);
  if (query.reset_external)
    throw errorAt(
      'reset_external',
      'UNSUPPORTED',
      'no cache lies outside of the processes that answer: saved prompts are files, which their owner deletes',
    );
  return query;
}
