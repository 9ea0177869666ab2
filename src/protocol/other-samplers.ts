/** Sampling fields of llama.cpp's server that are not served -> what to use instead. */

/** By name: what to use, and the value that turns the sampler off; no such value: a setting of one that has. */
const FIELDS: Readonly<Record<string, { readonly use: string; readonly off?: number }>> = {
  typical_p: { use: 'top_p or min_p', off: 1 },
  xtc_probability: { use: 'a higher temperature with min_p', off: 0 },
  xtc_threshold: { use: 'a higher temperature with min_p' },
  dry_multiplier: { use: 'repetition_penalty, frequency_penalty or bad_words', off: 0 },
  dry_base: { use: 'repetition_penalty, frequency_penalty or bad_words' },
  dry_allowed_length: { use: 'repetition_penalty, frequency_penalty or bad_words' },
  dry_penalty_last_n: { use: 'repetition_penalty, frequency_penalty or bad_words' },
  dry_sequence_breakers: { use: 'repetition_penalty, frequency_penalty or bad_words' },
  dynatemp_range: { use: 'temperature with min_p', off: 0 },
  dynatemp_exponent: { use: 'temperature with min_p' },
  mirostat: { use: 'top_p or min_p', off: 0 },
  mirostat_tau: { use: 'top_p or min_p' },
  mirostat_eta: { use: 'top_p or min_p' },
};

/** What to use instead of a field; null: it is no such field. */
export function replacementOf(name: string): string | null {
  return Object.hasOwn(FIELDS, name) ? FIELDS[name]!.use : null;
}

/** Whether a value turns a sampler on that would be missed: over HTTP it must not be ignored. */
export function turnsOn(name: string, value: unknown): boolean {
  const off = Object.hasOwn(FIELDS, name) ? FIELDS[name]!.off : undefined;
  return off !== undefined && value !== null && value !== off;
}
