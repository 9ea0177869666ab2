/** An `hf:` reference to an ONNX repository -> a folder with its files: that of the option `hub`, else the cache of transformers.js. */
import fs from 'node:fs';
import path from 'node:path';
import { errorAt, OnpolicyError } from '../errors.ts';
import { downloadFile, networkReason, type Progress } from '../models/hub/index.ts';
import type { HubOptions } from '../protocol/index.ts';
import { loadTransformers } from './packages.ts';

/** A repository, or one graph in it: `hf:owner/name`, `hf:owner/name/onnx/model_q4.onnx`. */
export type OnnxReference = { readonly repository: string; readonly graph: string };

const DEFAULT_GRAPH = 'onnx/model.onnx';
/** Decoder graph of a model with vision. */
const SEEING_GRAPH = 'onnx/decoder_model_merged.onnx';
const REQUIRED = ['config.json', 'tokenizer.json', 'tokenizer_config.json'];
const OPTIONAL = [
  'generation_config.json',
  'chat_template.jinja',
  'chat_template.json',
  'preprocessor_config.json',
  'processor_config.json',
  '1_Pooling/config.json',
];
/** Highest number of weight files beside a graph. */
const MAX_DATA_FILES = 100;

/** Parses an `hf:` reference. Returns null unless it names a graph, or a repository with "onnx" in its name. */
export function parseHubReference(reference: string): OnnxReference | null {
  const [owner, name, ...file] = reference.replace(/^hf:/, '').split('/');
  if (!owner || !name || name.includes(':')) return null;
  const graph = file.join('/');
  if (graph === '' ? !/onnx/i.test(`${owner}/${name}`) : !graph.endsWith('.onnx')) return null;
  return { repository: `${owner}/${name}`, graph: graph === '' ? DEFAULT_GRAPH : graph };
}

/** Returns the path of a repository's graph, downloaded if it is not cached. Fails with `NETWORK_FAILED` or `ABORTED`. */
export async function fetchModel(
  { repository, graph }: OnnxReference,
  hub: HubOptions,
  signal: AbortSignal,
  onProgress: (progress: Progress) => void = () => {},
): Promise<string> {
  const { env } = await loadTransformers();
  const folder = path.join(path.resolve(hub.folder ?? env.cacheDir ?? '.cache'), repository);
  const isOffline = hub.offline ?? !env.allowRemoteModels;
  const address = (file: string): string =>
    new URL(
      `${env.remotePathTemplate.replace('{model}', repository).replace('{revision}', 'main')}${file}`,
      hub.endpoint?.replace(/\/*$/, '/') ?? env.remoteHost,
    ).href;
  const get = async (file: string, progress?: (progress: Progress) => void): Promise<boolean> => {
    const target = path.join(folder, file);
    if (fs.existsSync(target)) return true;
    if (isOffline) throw new Error(`${target} is missing, and nothing may be downloaded`);
    const { token = null } = hub;
    return (await downloadFile({ url: address(file), token, signal, onProgress: progress }, target)) !== null;
  };
  let isCached = false;
  const getIfAny = async (file: string, progress?: (progress: Progress) => void): Promise<boolean> => {
    try {
      return await get(file, progress);
    } catch (error) {
      if (isCached && !signal.aborted) return false; // no network: the local files are used
      throw error;
    }
  };
  try {
    for (const file of REQUIRED) if (!(await get(file))) throw new Error(`the repository holds no ${file}`);
    const graphs = graphsOf(folder, graph);
    isCached = graphs.every((names) => names.some((name) => fs.existsSync(path.join(folder, name))));
    for (const file of OPTIONAL) await getIfAny(file);
    for (const names of graphs) {
      const found = await firstOf(names, (name) => (isCached ? getIfAny : get)(name, onProgress));
      if (found === null) throw new Error(`the repository holds no ${names[0]}`);
      for (let part = 0; part < MAX_DATA_FILES; part++)
        if (!(await getIfAny(`${found}_data${part === 0 ? '' : `_${part}`}`, onProgress))) break;
    }
    return path.join(folder, graphs[0]![0]!);
  } catch (cause) {
    if (signal.aborted)
      throw new OnpolicyError('ABORTED', `downloading hf:${repository} was aborted`, { cause });
    if (cause instanceof OnpolicyError) throw cause;
    throw errorAt(
      'model',
      'NETWORK_FAILED',
      `hf:${repository} is not in ${folder} and could not be downloaded: ${networkReason(cause)}`,
      cause,
    );
  }
}

/**
 * Returns the possible names of each graph of a model, of which the first existing one is used: the decoder, and with vision its other
 * graphs.
 */
function graphsOf(folder: string, graph: string): string[][] {
  const config = fs.readFileSync(path.join(folder, 'config.json'), 'utf8');
  if (!/"image_token_(id|index)"/.test(config)) return [[graph]];
  const decoder = graph === DEFAULT_GRAPH ? SEEING_GRAPH : graph;
  const ending = /_merged(\w*)\.onnx$/.exec(decoder)?.[1] ?? '';
  const beside = (stem: string): string[] =>
    [...new Set([ending, ''])].map((end) => `${path.posix.dirname(decoder)}/${stem}${end}.onnx`);
  return [[decoder], beside('vision_encoder'), beside('embed_tokens')];
}

async function firstOf(
  names: readonly string[],
  get: (name: string) => Promise<boolean>,
): Promise<string | null> {
  for (const name of names) if (await get(name)) return name;
  return null;
}
