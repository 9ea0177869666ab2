/** An `hf:` URI of a GGUF model -> its file, downloaded where needed: node-llama-cpp's downloader, which the packed library carries in this file. */
export { resolveModelFile } from 'node-llama-cpp';
