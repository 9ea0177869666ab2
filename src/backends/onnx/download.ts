/** An `hf:` reference to an ONNX repository -> a folder with its files: that of the option `hub`, else transformers.js' own cache. */
import fs from 'node:fs';
import path from 'node:path';
import { messageOf, OnpolicyError } from '../../errors.ts';
import { loadTransformers } from './packages.ts';
import { downloadFile, type OnProgress } from './resumable.ts';

/** A repository, or one graph in it: `hf:owner/name`, `hf:owner/name/onnx/model_q4.onnx`. */
export type HubReference = { readonly repository: string; readonly graph: string };

const DEFAULT_GRAPH = 'onnx/model.onnx';
const REQUIRED = ['config.json', 'tokenizer.json', 'tokenizer_config.json'];
const OPTIONAL = ['generation_config.json', 'chat_template.jinja', 'chat_template.json'];
/** Weights beside a graph come in this many files at most. */
const MAX_DATA_FILES = 100;

/**
 * Reads an `hf:` reference; null when it does not look like one of ONNX: it names a graph, or a repository that has
 * "onnx" in its name.
 */
export function parseHubReference(reference: string): HubReference | null {
  const [owner, name, ...file] = reference.replace(/^hf:/, '').split('/');
  if (!owner || !name || name.includes(':')) return null;
  const graph = file.join('/');
  if (graph === '' ? !/onnx/i.test(`${owner}/${name}`) : !graph.endsWith('.onnx')) return null;
  return { repository: `${owner}/${name}`, graph: graph === '' ? DEFAULT_GRAPH : graph };
}

/** Where models named by `hf:` URIs come from and go to. */
export type HubOptions = {
  /** Gives access to gated and private repositories. */
  readonly token?: string;
  /** Where downloads are kept. Default: `~/.node-llama-cpp/models` for GGUF files, the cache of transformers.js for ONNX. */
  readonly folder?: string;
  /** Address of a mirror of the hub. */
  readonly endpoint?: string;
  /** Whether only what is in the folder is used. Default false. */
  readonly offline?: boolean;
};

/** The path of a repository's graph, downloaded where the cache does not hold it. Fails with `NETWORK_FAILED` or `ABORTED`. */
export async function fetchModel(
  { repository, graph }: HubReference,
  hub: HubOptions,
  signal: AbortSignal,
  onProgress: OnProgress = () => {},
): Promise<string> {
  const { env } = await loadTransformers();
  const folder = path.join(path.resolve(hub.folder ?? env.cacheDir ?? '.cache'), repository);
  const isOffline = hub.offline ?? !env.allowRemoteModels;
  const address = (file: string): string =>
    new URL(
      `${env.remotePathTemplate.replace('{model}', repository).replace('{revision}', 'main')}${file}`,
      hub.endpoint?.replace(/\/*$/, '/') ?? env.remoteHost,
    ).href;
  const get = async (file: string, progress?: OnProgress): Promise<boolean> => {
    const target = path.join(folder, file);
    if (fs.existsSync(target)) return true;
    if (isOffline) throw new Error(`${target} is missing, and nothing may be downloaded`);
    const { token = null } = hub;
    return await downloadFile({ url: address(file), token, signal, onProgress: progress }, target);
  };
  const isCached = [...REQUIRED, graph].every((file) => fs.existsSync(path.join(folder, file)));
  const getIfAny = async (file: string, progress?: OnProgress): Promise<boolean> => {
    try {
      return await get(file, progress);
    } catch (error) {
      if (isCached && !signal.aborted) return false; // no network: what is there is the model
      throw error;
    }
  };
  try {
    for (const file of REQUIRED) if (!(await get(file))) throw new Error(`the repository holds no ${file}`);
    for (const file of OPTIONAL) await getIfAny(file);
    if (!(await get(graph, onProgress))) throw new Error(`the repository holds no ${graph}`);
    for (let part = 0; part < MAX_DATA_FILES; part++)
      if (!(await getIfAny(`${graph}_data${part === 0 ? '' : `_${part}`}`, onProgress))) break;
  } catch (cause) {
    if (signal.aborted)
      throw new OnpolicyError('ABORTED', `downloading hf:${repository} was aborted`, { cause });
    throw new OnpolicyError(
      'NETWORK_FAILED',
      `model: hf:${repository} is not in ${folder} and could not be downloaded: ${messageOf(cause)}`,
      { cause, param: 'model' },
    );
  }
  return path.join(folder, graph);
}
