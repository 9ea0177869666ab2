// Schemas with documents -> mask and compile times of walks that find everything cold, the vocabulary warm, or all warm.
/** Times the walk of every document: microseconds by step. */
function walk(grammar, constraint, texts, mask) {
  const steps = [];
  for (const ids of texts) {
    const matcher = grammar.createMatcher(constraint);
    for (const id of ids) {
      const before = performance.now();
      grammar.fillMask(matcher, mask);
      steps.push((performance.now() - before) * 1000);
      if (!grammar.accept(matcher, id)) break;
    }
  }
  return steps;
}

/** Token ids of each valid document of a schema. */
export function documentsOf(grammar, vocabulary, { cases }) {
  return cases
    .filter((entry) => entry.valid && entry.text !== undefined)
    .map((entry) => grammar.tokenizeBytes(vocabulary, new Uint8Array(Buffer.from(entry.text))));
}

/**
 * The first walk of each document, schema after schema: the milliseconds of the compilation, and by document the microseconds of
 * each mask; undefined for a refused schema.
 */
export async function firstWalks({ grammar, vocabulary, groups, native }) {
  const mask = new Int32Array(Math.ceil(grammar.vocabularyInfo(vocabulary).size / 32));
  const walks = [];
  for (const group of groups) {
    const start = performance.now();
    const compiled = await grammar.compileConstraint(native(group), vocabulary).catch(() => undefined);
    const compileMs = performance.now() - start;
    const documents = documentsOf(grammar, vocabulary, group);
    walks.push(
      compiled && {
        compileMs,
        documents: documents.map((ids) => walk(grammar, compiled.constraint, [ids], mask)),
      },
    );
  }
  return walks;
}

const least = (best, values) => (best ? best.map((value, index) => Math.min(value, values[index])) : values);

/**
 * Walks of each schema's valid documents: the first one on a vocabulary object that only earlier schemas of the suite have
 * warmed, one with a new constraint on it, one with the same constraint again; and on another vocabulary object a first one of
 * a constraint that had time for its warm-up, as it has while a prompt is computed. Each pass makes its own vocabulary objects;
 * a step's time is the least of all passes, as other load only adds time.
 */
export async function measureWalks({ grammar, readVocabulary, groups, native, passes }) {
  const times = { first: [], warm: [], again: [], prepared: [] };
  const compiles = [];
  const warmUps = [];
  for (let pass = 0; pass < passes; pass++) {
    const vocabulary = await readVocabulary();
    const other = await readVocabulary();
    const mask = new Int32Array(Math.ceil(grammar.vocabularyInfo(vocabulary).size / 32));
    for (const [index, group] of groups.entries()) {
      const texts = documentsOf(grammar, vocabulary, group);
      const compile = async () => {
        const start = performance.now();
        const compiled = await grammar.compileConstraint(native(group), vocabulary).catch(() => undefined);
        compiles[index] = Math.min(compiles[index] ?? Infinity, performance.now() - start);
        return compiled?.constraint;
      };
      const cold = await compile();
      if (!cold) continue;
      const note = (kind, steps) => {
        times[kind][index] = least(times[kind][index], steps);
      };
      note('first', walk(grammar, cold, texts, mask));
      const fresh = await compile();
      note('warm', walk(grammar, fresh, texts, mask));
      note('again', walk(grammar, fresh, texts, mask));
      const { constraint: prepared } = await grammar.compileConstraint(native(group), other);
      const start = performance.now();
      await grammar.warmUp(prepared);
      warmUps[index] = Math.min(warmUps[index] ?? Infinity, performance.now() - start);
      note('prepared', walk(grammar, prepared, texts, mask));
    }
  }
  const sorted = (values) => values.flat().sort((a, b) => a - b);
  return {
    first: sorted(times.first),
    warm: sorted(times.warm),
    again: sorted(times.again),
    prepared: sorted(times.prepared),
    compiles: sorted(compiles),
    warmUps: sorted(warmUps),
  };
}
