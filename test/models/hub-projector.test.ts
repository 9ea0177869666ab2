/** The projector of an `hf:` model: found in its repository on a hub of this machine, noted, downloaded once. */
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { chooseProjector, projectorInRepository } from '../../src/models/hub-projector.ts';
import { type ModelHub, openModelHub } from '../fakes/model-hub.ts';

describe('of the projectors of a repository', () => {
  it.each<[string, string[], string, string | null]>([
    ['none is none', ['model-Q4_K_M.gguf', 'mmproj.txt', 'README.md'], '.', null],
    ['the one there is', ['a.gguf', 'mmproj-a-Q4.gguf'], '.', 'mmproj-a-Q4.gguf'],
    [
      'that of 16 bits',
      ['mmproj-BF16.gguf', 'mmproj-F32.gguf', 'mmproj-F16.gguf', 'mmproj-Q8_0.gguf'],
      '.',
      'mmproj-F16.gguf',
    ],
    [
      'BF16 before larger and smaller ones',
      ['mmproj-Q8_0.gguf', 'mmproj-f32.gguf', 'mmproj-bf16.gguf'],
      '.',
      'mmproj-bf16.gguf',
    ],
    ['one whose name ends so', ['x.mmproj-f16.gguf', 'x.gguf'], '.', 'x.mmproj-f16.gguf'],
    [
      "that in the model's folder",
      ['mmproj-F16.gguf', 'big/mmproj-Q8_0.gguf'],
      'big',
      'big/mmproj-Q8_0.gguf',
    ],
    [
      'that of another folder where the own has none',
      ['small/mmproj-F16.gguf'],
      '.',
      'small/mmproj-F16.gguf',
    ],
  ])('%s', (_, files, folder, chosen) => {
    expect(chooseProjector(files, folder)).toBe(chosen);
  });
});

describe('a repository', () => {
  let hub: ModelHub;
  let folder: string;
  let warnings: string[] = [];

  beforeAll(async () => {
    const file = Buffer.from('a file');
    hub = await openModelHub({
      'o/seeing-GGUF': { 'README.md': file, 'text-Q4_K_M.gguf': file, 'mmproj-F16.gguf': file },
    });
  });
  afterAll(() => hub.close());
  beforeEach(() => {
    folder = fs.mkdtempSync(path.join(os.tmpdir(), 'onpolicy-projector-'));
    warnings = [];
    hub.asked.length = 0;
  });
  afterEach(() => fs.rmSync(folder, { recursive: true }));

  const find = (reference: string, options: object = {}, signal = new AbortController().signal) =>
    projectorInRepository(reference, path.join(folder, 'model.gguf'), {
      hub: { endpoint: hub.endpoint, folder, ...options },
      signal,
      warn: (line) => warnings.push(line),
    });

  it.each([
    ['hf:o/seeing-GGUF', 'hf:o/seeing-GGUF/mmproj-F16.gguf', 'main'],
    ['hf:o/seeing-GGUF:Q4_K_M', 'hf:o/seeing-GGUF/mmproj-F16.gguf', 'main'],
    ['hf:o/seeing-GGUF/text-Q4_K_M.gguf#new', 'hf:o/seeing-GGUF/mmproj-F16.gguf#new', 'new'],
  ])('is asked once: %s', async (reference, uri, branch) => {
    expect(await find(reference, { token: 'secret' })).toBe(uri);
    expect(hub.asked).toEqual([
      { url: `/api/models/o/seeing-GGUF/revision/${branch}`, authorization: 'Bearer secret' },
    ]);
    expect(await find(reference)).toBe(uri);
    expect(await find(reference, { offline: true })).toBe(uri);
    expect(hub.asked).toHaveLength(1);
    expect(warnings).toEqual([]);
  });

  it('is not asked offline', async () => {
    expect(await find('hf:o/seeing-GGUF', { offline: true })).toBe(null);
    expect(hub.asked).toEqual([]);
  });

  it('that gives no list leaves the model without one, with a warning, and is asked again', async () => {
    for (let i = 1; i <= 2; i++) {
      expect(await find('hf:o/other')).toBe(null);
      expect(hub.asked).toHaveLength(i);
    }
    expect(warnings[0]).toContain('hf:o/other: whether its repository has a projector is not known: ');
  });

  it('is left when the load is aborted', async () => {
    await expect(find('hf:o/seeing-GGUF', {}, AbortSignal.abort())).rejects.toMatchObject({
      code: 'ABORTED',
    });
  });
});
