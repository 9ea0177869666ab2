/** The type of an endpoint: what requests select it, who may call it, and what the docs say of it. */
import type { ErrorForm, RequestName, Scope } from '../../../protocol/index.ts';
import type { EndpointHandler } from './context.ts';

export type Endpoint = {
  readonly method: string;
  /** Path pattern; `{id}` matches any segment. */
  readonly path: string;
  /** A token needs one of these scopes. Null if the endpoint requires no token. */
  readonly scopes: readonly Scope[] | null;
  readonly handle: EndpointHandler;
  readonly form: ErrorForm;
  /** Description in the list of endpoints in docs/serving.md. */
  readonly docs: string;
  /** Schema of the body, or of the query of a `GET` and of `POST /reset_prefix_cache`. Null if it has none of its own. */
  readonly schema: RequestName | null;
  /** Fields of its form, if its body is a form. */
  readonly upload: readonly string[] | null;
  /** Content type of its answer. */
  readonly type: string;
  /** Name of its method in the table of methods. Null if it has none. */
  readonly name: string | null;
  /** True if an answer takes tokens in addition to those of the prompt. */
  readonly isAnswered: boolean;
};
