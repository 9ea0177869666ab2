/** The backend contract on the fake. */
import { bytes, byteTokenizer, EOS } from '../fakes/byte-tokenizer.ts';
import { CheckingBackend } from '../fakes/checking-backend.ts';
import { FakeMatcher, fakeSampler } from '../fakes/fake-sampler.ts';
import { backendContract } from './backend-contract.ts';
import { CONTRACT_LIMITS } from './backend-driver.ts';

for (const isKvUnified of [true, false])
  backendContract(`the fake (unified KV cache: ${isKvUnified})`, async () => {
    const backend = new CheckingBackend({
      ...CONTRACT_LIMITS,
      isKvUnified,
      outputRows: CONTRACT_LIMITS.maxOutputs,
      rollbackTokens: Infinity,
      windowTokens: 0,
      rowTile: 1,
      vocabSize: byteTokenizer.vocabSize,
    });
    return {
      backend,
      sampler: fakeSampler,
      matcher: async (texts) => FakeMatcher.handle(texts.map(bytes), EOS),
      textOf: (ids) => String.fromCharCode(...ids),
      digits: 6,
      forcesTokens: true,
      adapter: 'tuned',
      close: () => backend.close(),
    };
  });
