/** The memory that a model needs -> whether this machine has it. */
import os from 'node:os';
import { freeGpuBytes, usesGpu } from '../native/index.ts';
import type { Gpu } from '../protocol/index.ts';
import { type MemoryNeed, totalBytes } from './memory-need.ts';
import type { Placement } from './placement.ts';

/** How much of the free memory a model may take so that others have room. */
const SHARE = 0.85;

/** Whether a model fits this machine now. */
export type Fit = {
  /**
   * `gpu`: all of it into GPUs. `memory`: into the memory that is free, with room left. `tight`: into the memory of the machine, if other
   * programs give some up. `no`: it does not.
   */
  readonly verdict: 'gpu' | 'memory' | 'tight' | 'no';
  /** Bytes of main memory that are free, and all of them. */
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

/** Bytes that a model may take: of the GPUs, or of main memory if that is more. */
export function roomFor(gpu: Gpu): number {
  return SHARE * Math.max(process.availableMemory(), usesGpu(gpu) ? freeGpuBytes() : 0);
}
