/** The interface of schemas of other libraries, as far as requests use it: https://standardschema.dev. */

/**
 * A schema of zod, valibot, arktype and others: https://standardschema.dev. Its `~standard.jsonSchema` gives the JSON Schema that an answer
 * must fit; `~standard.validate` reads the answer.
 */
export interface StandardSchema<Output = unknown> {
  readonly '~standard': {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
    /** Checks a value. Returns what the schema makes of it, or what is wrong. */
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly jsonSchema: {
      /** Returns the JSON Schema of the values that the schema accepts. */
      readonly input: (options: { readonly target: 'draft-2020-12' }) => Record<string, unknown>;
    };
  };
}

/** The result of a schema's `validate`: a value, or what is wrong. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** One thing that is wrong with a value. */
export type StandardIssue = {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
};
