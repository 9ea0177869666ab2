/** Options of a runtime: faults name the option by its path, defaults are those of the schemas. */
import { describe, expect, it } from 'vitest';
import type { OnpolicyError } from '../../src/errors.ts';
import { argumentDefinitions } from '../../src/protocol/schemas/index.ts';
import { checkOptions } from '../../src/runtime/options.ts';

const path = 'm.gguf';

describe('a wrong option of a runtime', () => {
  it.each<[message: string, options: unknown]>([
    ['options: expected an object, got null', null],
    ['thread: not a field of options; did you mean threads?', { thread: 1 }],
    ['model: expected a path, an hf: URI or an object with a path, got 5', { model: 5 }],
    ['model.path: this field is required, got nothing', { model: {} }],
    ['model.rope.factor: expected a number > 0, got 0', { model: { path, rope: { factor: 0 } } }],
    ['model.rope.scale: not a field of model.rope', { model: { path, rope: { scale: 2 } } }],
    ['model.gpuLayers: expected "auto" or an integer >= 0, got -1', { model: { path, gpuLayers: -1 } }],
    [
      'models.a.cpuExpertLayers: expected "all" or an integer >= 0, got 0.5',
      { models: { a: { path, cpuExpertLayers: 0.5 } } },
    ],
    ['diskCacheBytes: expected 0 with prefixCache: false, got 5', { prefixCache: false, diskCacheBytes: 5 }],
    [
      'models.a.diskCacheBytes: expected 0 with prefixCache: false, got 5',
      { prefixCache: false, models: { a: { path, diskCacheBytes: 5 } } },
    ],
    ['diskCacheBytes: expected an integer >= 0, got -1', { diskCacheBytes: -1 }],
    ['model.imageTokens.min: expected an integer >= 1, got 0', { model: { path, imageTokens: { min: 0 } } }],
    [
      'models.small.threads: expected an integer from 1 to 512, got 0',
      { models: { small: { path, threads: 0 } } },
    ],
    [
      'models.small.adapters.0: expected an object with either file or model, got an object',
      { models: { small: { path, adapters: [{ scale: 1 }] } } },
    ],
    [
      'models.small.adapters.0.file: expected a path',
      { models: { small: { path, adapters: [{ file: '\0' }] } } },
    ],
    [
      'models.small.mainGpu: expected no value with devices, got "a"',
      { models: { small: { path, devices: ['a'], mainGpu: 'a' } } },
    ],
    ['model.devices: expected a non-empty list, got an empty list', { model: { path, devices: [] } }],
    [
      'model.tensorSplit: expected shares, at least one above 0, got a list of 2',
      { model: { path, tensorSplit: [0, 0] } },
    ],
    [
      'model.cacheBits: expected no value with cacheType',
      { model: { path, cacheType: 'f16', cacheBits: 16 } },
    ],
    [
      'model.rope.betaFast: expected no value unless rope.type is yarn',
      { model: { path, rope: { betaFast: 3 } } },
    ],
    ['hub.token: expected a token: letters without blanks, got a string', { hub: { token: 'my secret' } }],
    [
      'hub.endpoint: expected an address that begins with http:// or https://',
      { hub: { endpoint: 'http://[' } },
    ],
    ['media.maxParts: expected an integer >= 0, got 0.5', { media: { maxParts: 0.5 } }],
    ['memory.idleMs: expected an integer >= 0 or null, got -1', { memory: { idleMs: -1 } }],
    ['training.rank: expected an integer from 1 to 1024, got 0', { training: { rank: 0 } }],
    ['tracker.deleteRun: this field is required', { tracker: { startRun: () => {}, log: () => {} } }],
    ['log: expected a function, got "file"', { log: 'file' }],
    ['home: expected a path of a folder, got ""', { home: '' }],
    [
      'speculation.model: expected a model with method draft, got nothing',
      { speculation: { method: 'draft' } },
    ],
    ['speculative_config: expected an object with a method or a model', { speculative_config: {} }],
    [
      'speculative_config.model: expected no value with method ngram, got "m"',
      { speculative_config: { method: 'ngram', model: 'm' } },
    ],
    [
      'speculative_config: expected no value with speculation',
      { speculation: false, speculative_config: { method: 'ngram' } },
    ],
  ])('%s', (message, options) => {
    expect(() => checkOptions(options as never)).toThrow(message);
  });

  it('is listed with all others, and a secret is in no part of the error', () => {
    let thrown: unknown;
    try {
      checkOptions({ threads: 0, gpu: 'tpu', hub: { token: 'my secret' } } as never);
    } catch (error) {
      thrown = error;
    }
    const { code, detail } = thrown as OnpolicyError;
    expect(code).toBe('INVALID_REQUEST');
    expect(detail!.map(({ loc }) => loc.join('.')).toSorted()).toEqual(['gpu', 'hub.token', 'threads']);
    expect(JSON.stringify([thrown, (thrown as Error).message])).not.toContain('my secret');
  });
});

describe('defaults of a runtime', () => {
  it('are those of the schemas, also for options that are undefined', () => {
    const found = checkOptions({ home: undefined, media: { maxParts: 3 }, hub: undefined });
    for (const [name, { default: value }] of Object.entries(
      argumentDefinitions['RuntimeOptions']!.properties!,
    ))
      if (value !== undefined) expect(found).toHaveProperty(name, value);
    for (const [name, { default: value }] of Object.entries(argumentDefinitions['MediaOptions']!.properties!))
      expect(found.media).toHaveProperty(name, name === 'maxParts' ? 3 : value);
  });

  it("take vLLM's names for drafts", () => {
    const config = { model: 'small', num_speculative_tokens: 3, prompt_lookup_min: 2, prompt_lookup_max: 4 };
    expect(checkOptions({ speculative_config: config }).speculation).toEqual({
      method: 'draft',
      model: 'small',
      maxTokens: 3,
      minMatch: 2,
    });
  });
});
