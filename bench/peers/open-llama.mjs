// Threads -> node-llama-cpp's engine, as it ships, on the CPU.
import { getLlama, LlamaLogLevel } from 'node-llama-cpp';

export const openLlama = (maxThreads) =>
  getLlama({ gpu: false, build: 'never', progressLogs: false, logLevel: LlamaLogLevel.error, maxThreads });
