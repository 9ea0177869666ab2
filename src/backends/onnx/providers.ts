/** The `gpu` option -> execution providers of the installed onnxruntime. */
import { errorAt } from '../../errors.ts';
import { loadRuntime } from './packages.ts';

/** Names of onnxruntime for the processors that can be asked for. */
const PROVIDERS = { cuda: 'cuda', vulkan: 'webgpu', metal: 'coreml' } as const;

/**
 * Providers in order of preference; the CPU computes what the others cannot. `auto` is CUDA where onnxruntime-node was
 * installed with it, else the CPU: the other providers take a decoder's graph only in pieces.
 */
export async function chooseProviders(gpu: 'auto' | 'cuda' | 'vulkan' | 'metal' | false): Promise<string[]> {
  if (gpu === false) return ['cpu'];
  const { listSupportedBackends } = await loadRuntime();
  const installed = new Set(
    listSupportedBackends()
      .filter(({ bundled }) => bundled)
      .map(({ name }) => name),
  );
  const wanted = gpu === 'auto' ? PROVIDERS.cuda : PROVIDERS[gpu];
  if (installed.has(wanted)) return [wanted, 'cpu'];
  if (gpu === 'auto') return ['cpu'];
  throw errorAt(
    'gpu',
    'NATIVE_UNAVAILABLE',
    `the installed onnxruntime-node has no provider ${wanted}; it has ${[...installed].join(', ')}`,
  );
}
