/** The text of a call's arguments and the tool's schema -> the arguments, or what is wrong with them. */
import { OnpolicyError } from '../../errors.ts';
import { compileConstraint, createVocabulary, type Vocabulary } from '../../structured/index.ts';

const END = 256;
const SHOWN = 40;
let bytes: Vocabulary | null = null; // a token per byte

/** Reads arguments byte by byte with the automaton that constrains answers to the schema. */
export async function readArguments(
  text: string,
  schema: object,
): Promise<{ readonly value: object } | { readonly fault: string }> {
  let value: unknown;
  try {
    value = JSON.parse(text === '' ? '{}' : text);
  } catch {
    return { fault: 'the arguments are not JSON' };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return { fault: 'the arguments are not a JSON object' };
  const matcher = (await compiled(schema)).createMatcher();
  try {
    const written = Buffer.from(JSON.stringify(value));
    const at = written.findIndex((byte) => !matcher.accept(byte));
    if (at < 0 && matcher.isComplete()) return { value };
    const before = at < 0 ? written : written.subarray(0, at);
    return {
      fault: `the arguments do not fit the schema of the tool, behind: ${before.toString().slice(-SHOWN)}`,
    };
  } finally {
    matcher.dispose();
  }
}

/** Compiles the schema of a tool. @throws OnpolicyError `INVALID_REQUEST` or `UNSUPPORTED`, naming the keyword, for one that cannot be checked */
export async function checkSchema(name: string, schema: object): Promise<void> {
  try {
    await compiled(schema);
  } catch (error) {
    if (!(error instanceof OnpolicyError)) throw error;
    const param = `tools.${name}.parameters`;
    throw new OnpolicyError(error.code, `${param}: ${error.message}`, { param, cause: error });
  }
}

function compiled(schema: object): ReturnType<typeof compileConstraint> {
  bytes ??= createVocabulary({
    tokens: [...Array.from({ length: END }, (_, byte) => Uint8Array.of(byte)), new Uint8Array(0)],
    eosTokenIds: [END],
  });
  const json = schema as Readonly<Record<string, unknown>>;
  return compileConstraint({ json, property_order: 'any' }, bytes);
}
