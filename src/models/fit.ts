/** The memory that a model needs -> whether this machine has it. */
import os from 'node:os';
import { freeGpuBytes, usesGpu } from '../engine/native/index.ts';
import type { Gpu } from '../protocol/index.ts';
import { type MemoryNeed, totalBytes } from './memory-need.ts';
import type { Placement } from './placement.ts';

/** Share of the free memory that a model may take, so that other programs have room. */
const SHARE = 0.85;

/** Result of checking whether a model fits this machine now. */
export type Fit = {
  /**
   * `gpu`: all of the model fits into GPUs. `memory`: it fits into the free memory, with room left. `tight`: it fits into the machine's
   * memory if other programs give some up. `no`: it does not fit.
   */
  readonly verdict: 'gpu' | 'memory' | 'tight' | 'no';
  /** Bytes of free main memory, and of all main memory. */
  readonly freeBytes: number;
  readonly totalBytes: number;
};

export function fitOf(need: MemoryNeed, { gpuLayers, layers }: Placement): Fit {
  const [free, total] = [process.availableMemory(), os.totalmem()];
  const host = totalBytes(need) - need.device;
  const verdict = (): Fit['verdict'] => {
    if (gpuLayers > 0 && gpuLayers === layers && host <= SHARE * free) return 'gpu';
    if (host <= SHARE * free) return 'memory';
    return host <= SHARE * total ? 'tight' : 'no';
  };
  return { verdict: verdict(), freeBytes: free, totalBytes: total };
}

/** Returns the bytes that a model may take: the free memory of the GPUs, or of main memory if that is more. */
export function roomFor(gpu: Gpu): number {
  return SHARE * Math.max(process.availableMemory(), usesGpu(gpu) ? freeGpuBytes() : 0);
}
