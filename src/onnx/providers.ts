/** The `gpu` option -> execution providers of the installed onnxruntime. */
import { errorAt } from '../errors.ts';
import { loadRuntime } from './packages.ts';

/** onnxruntime's names for the processors of the `gpu` option. */
const PROVIDERS = { cuda: 'cuda', vulkan: 'webgpu', metal: 'coreml' } as const;

/**
 * Returns the providers in order of preference; the CPU computes the operators that others cannot. `auto` selects CUDA if onnxruntime-node
 * was installed with it, else the CPU: the other providers only take a decoder's graph in pieces.
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
