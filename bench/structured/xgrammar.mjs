// A vocabulary, schemas with documents as token ids -> compile and mask times of xgrammar's package for npm; lines as of gbnf.cc.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import readline from 'node:readline';
import { fileURLToPath } from 'node:url';
import vm from 'node:vm';
import { readVocabularyHandle } from '../../dist/structured/constraint.js';

const [addon, vocabularyFile] = process.argv.slice(2);
const require = createRequire(import.meta.url);
const grammar = require(addon);
const { GrammarCompiler, GrammarMatcher, TokenizerInfo } = loadPackage(
  fileURLToPath(import.meta.resolve('@mlc-ai/web-xgrammar')),
);

/** Its package says that it is an ES module, but its file is a CommonJS one. */
function loadPackage(file) {
  const module = { exports: {} };
  const run = vm.compileFunction(
    fs.readFileSync(file, 'utf8'),
    ['exports', 'module', 'require', '__filename', '__dirname'],
    { filename: file, importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER },
  );
  run(module.exports, module, require, file, path.dirname(file));
  return module.exports;
}

/** Tokens as a byte-level vocabulary writes them: bytes that do not print are characters from U+0100 on. */
function byteLevelTexts(vocabulary, size) {
  const prints = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let next = 256;
  const characters = Array.from({ length: 256 }, (_, byte) =>
    String.fromCharCode(prints(byte) ? byte : next++),
  );
  return Array.from({ length: size }, (_, id) =>
    Array.from(grammar.tokenBytes(vocabulary, id), (byte) => characters[byte]).join(''),
  );
}

/** The line of one document. A vocabulary's end of sequence is no part of it. */
async function walk(compiled, ids) {
  const matcher = await GrammarMatcher.createGrammarMatcher(compiled);
  const times = [];
  let isAccepted = true;
  for (const id of ids) {
    const start = performance.now();
    const mask = await matcher.getNextTokenBitmask();
    times.push((performance.now() - start) * 1000);
    isAccepted = ((mask[id >> 5] >>> (id & 31)) & 1) === 1 && matcher.acceptToken(id);
    if (!isAccepted) break;
  }
  matcher.dispose();
  return [isAccepted ? 'accepted' : 'rejected', ...times].join(' ');
}

const vocabulary = await readVocabularyHandle(vocabularyFile);
const { size, eosTokenIds } = grammar.vocabularyInfo(vocabulary);
const texts = byteLevelTexts(vocabulary, size);
const info = await TokenizerInfo.createTokenizerInfo(texts, 'byte_level', false, size, [...eosTokenIds]);
const compiler = await GrammarCompiler.createGrammarCompiler(info, false);
const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const nextLine = async () => (await lines.next()).value;

for (let index = await nextLine(); index !== undefined; index = await nextLine()) {
  const schema = await nextLine();
  const documents = [];
  for (let left = Number(await nextLine()); left > 0; left--)
    documents.push((await nextLine()).split(' ').filter(Boolean).map(Number));
  try {
    const start = performance.now();
    const compiled = await compiler.compileJSONSchema(schema, true, undefined, undefined, false);
    console.log(index, performance.now() - start);
    for (const ids of documents) console.log(await walk(compiled, ids));
    compiled.dispose();
  } catch (error) {
    // After an abort nothing works in this process any more.
    if (error instanceof WebAssembly.RuntimeError) process.exit(1);
    console.log(index, 'refused');
  }
}
process.exit(0);
