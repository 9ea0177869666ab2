/** Files of LoRA adapters <-> weights: GGUF and PEFT, read, written, checked and converted. */
export { type BaseModel, checkAdapter } from './check-adapter.ts';
export { convertedBytes, convertPeft, hasKnownRows, PEFT_FILES } from './convert-peft.ts';
export { unnamedModule } from './expert-names.ts';
export { readGgufAdapter, writeGgufAdapter } from './gguf-adapter.ts';
export { toHuggingFace } from './hugging-face.ts';
export { huggingFaceConfig } from './hugging-face-config.ts';
export { fromPeft, LINEAR_MODULES, type PeftModel, peftConfig, plainAlpha, toPeft } from './peft-adapter.ts';
export { readPeftConfig } from './peft-config.ts';
export { deltaNetHeads } from './row-order.ts';
export { type FloatTensor, readSafetensors, safetensorsHeader, writeSafetensors } from './safetensors.ts';
export { type CountedAdapter, sumAdapters } from './sum-adapters.ts';
