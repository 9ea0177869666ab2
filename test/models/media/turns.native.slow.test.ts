/** An encode beside steps of other sequences: they take turns, counted in steps. */
import { expect, it } from 'vitest';
import { type Backend, NO_ADAPTER } from '../../../src/engine/backend/index.ts';
import { loadAddon, openDecoder } from '../../../src/engine/native/index.ts';
import { loadGguf } from '../../../src/models/formats/index.ts';
import { fileOf, pathOf } from './golden.ts';

const ENCODES = 40;
/** Contexts that step at the same time. */
const CONTEXTS = 2;
const NOTHING = new Int32Array(0);

it('lets the steps that wait run between two slices of an encode', async () => {
  const model = await loadGguf({ path: pathOf('idefics3'), gpu: false });
  await openDecoder();
  const projector = (await model.openVision({
    projector: pathOf('idefics3').replace('text', 'mmproj'),
    gpu: false,
    threads: 1,
  }))!;
  const limits = { kvTokens: 512, isKvUnified: false, batchTokens: 64, slotCount: 1, maxOutputs: 1 };
  const backends = await Promise.all(
    Array.from({ length: CONTEXTS }, () => model.createBackend({ ...limits, threads: 1 })),
  );
  let steps = 0;
  let isEnded = false;
  const stepOn = async (backend: Backend): Promise<void> => {
    for (; !isEnded; steps++)
      await backend.step({
        adapter: NO_ADAPTER,
        memoryEdits: Int32Array.of(0, 0, 0, 0, -1),
        tokens: Int32Array.of(1),
        positions: Int32Array.of(0),
        sequences: Int32Array.of(0),
        sampleRows: NOTHING,
        samplers: [],
        rowEdits: [],
        scoreRows: NOTHING,
        mayRunAhead: false,
      });
  };
  try {
    const { handle } = await loadAddon().decodeMedia({
      kind: 'image',
      bytes: fileOf('photo.jpg'),
      pixels: 2 ** 20,
      seconds: 1,
      timeMs: 10_000,
      sampleRate: 0,
    });
    const chunks = await projector.tokenize([handle], false);
    const [medium] = chunks.flatMap((chunk) => (chunk.tokens ? [] : [chunk.handle]));
    const encode = () => projector.encode(medium!, new Int32Array(1));
    expect((await encode()).slices).toBe(1); // nobody waits
    steps = 0;
    const stepping = Promise.all(backends.map(stepOn));
    let slices = 0;
    for (let i = 0; i < ENCODES; i++) slices += (await encode()).slices;
    isEnded = true;
    await stepping;
    expect(slices).toBeGreaterThan(ENCODES);
    expect(steps).toBeGreaterThanOrEqual(slices - ENCODES);
  } finally {
    isEnded = true;
    for (const backend of backends) await backend.close();
    projector.close();
    model.close();
  }
});
