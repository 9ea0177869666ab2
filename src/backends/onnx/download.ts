/** An `hf:` reference to an ONNX repository -> a folder with its files: transformers.js' own cache, and its settings for the hub. */
import fs from 'node:fs';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { messageOf, OnpolicyError } from '../../errors.ts';
import { loadTransformers } from './packages.ts';

/** A repository, or one graph in it: `hf:owner/name`, `hf:owner/name/onnx/model_q4.onnx`. */
export type HubReference = { readonly repository: string; readonly graph: string };

/** Called with the fraction of the largest file that has arrived. */
export type OnProgress = (fraction: number) => void;

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

/** The path of a repository's graph, downloaded where the cache does not hold it. Fails with `NETWORK_FAILED` or `ABORTED`. */
export async function fetchModel(
  { repository, graph }: HubReference,
  signal: AbortSignal,
  onProgress: OnProgress = () => {},
): Promise<string> {
  const { env } = await loadTransformers();
  const folder = path.join(env.cacheDir ?? '.cache', repository);
  const address = (file: string): string =>
    new URL(
      `${env.remotePathTemplate.replace('{model}', repository).replace('{revision}', 'main')}${file}`,
      env.remoteHost,
    ).href;
  const get = async (file: string, progress?: OnProgress): Promise<boolean> => {
    const target = path.join(folder, file);
    if (fs.existsSync(target)) return true;
    if (!env.allowRemoteModels) throw new Error(`${target} is missing, and transformers.js may not download`);
    return await download(address(file), target, signal, progress);
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

/** False: there is no such file. What has arrived shows under its name only when it is whole. */
async function download(
  url: string,
  target: string,
  signal: AbortSignal,
  onProgress?: OnProgress,
): Promise<boolean> {
  const headers = process.env['HF_TOKEN'] ? { authorization: `Bearer ${process.env['HF_TOKEN']}` } : {};
  const response = await fetch(url, { signal, headers });
  if (response.status === 404) return false;
  if (!response.ok || !response.body) throw new Error(`${url} answered ${response.status}`);
  const total = Number(response.headers.get('content-length') ?? 0);
  const part = `${target}.${process.pid}.part`;
  fs.mkdirSync(path.dirname(target), { recursive: true });
  let arrived = 0;
  try {
    await pipeline(
      Readable.fromWeb(response.body as never),
      async function* (chunks: AsyncIterable<Buffer>) {
        for await (const chunk of chunks) {
          arrived += chunk.length;
          if (total > 0) onProgress?.(arrived / total);
          yield chunk;
        }
      },
      fs.createWriteStream(part),
    );
    fs.renameSync(part, target);
  } finally {
    fs.rmSync(part, { force: true });
  }
  return true;
}
