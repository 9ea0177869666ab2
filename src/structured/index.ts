/// <reference types="node" preserve="true" />
/**
 * Constrained decoding on its own: vocabulary + specification -> masks over the next token.
 *
 * @example
 * ```ts
 * const vocabulary = await readVocabulary('model.gguf');
 * const constraint = await compileConstraint({ regex: '[0-9]{4}' }, vocabulary);
 * const matcher = constraint.createMatcher();
 * const mask = new Int32Array(Math.ceil(vocabulary.size / 32));
 * matcher.fillMask(mask);
 * ```
 */
export {
  compileChecked,
  compileConstraint,
  constraintHandle,
  createVocabulary,
  cutMasks,
  modelVocabulary,
  readVocabulary,
} from './constraint.ts';
export { type CallerPaths, OWN_PATHS, toCallerWarning } from './spec-error.ts';
export type { Constraint, Matcher, StructuredOutputs, Vocabulary } from './types.ts';
export { kindOf } from './validate.ts';
