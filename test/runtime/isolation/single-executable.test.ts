/** A program inside of Node's own binary, which starts itself where it is asked to start Node. */
import { afterEach, expect, it, vi } from 'vitest';
import { createRuntime } from '../../../src/runtime/runtime.ts';
import { newHome } from '../../rl/store/homes.ts';

afterEach(() => vi.restoreAllMocks());

it('a single executable refuses isolation, and works without it', async () => {
  vi.spyOn(process, 'getBuiltinModule').mockReturnValue({ isSea: () => true } as never);
  await expect(createRuntime({ home: newHome(), isolate: true })).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    message: expect.stringMatching(/^isolate: /),
  });
  const model = { path: './m.gguf', isolate: true };
  await expect(createRuntime({ home: newHome(), model })).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  await (await createRuntime({ home: newHome() })).close();
});
