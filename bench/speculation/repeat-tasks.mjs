// Real text -> prompts whose answer stands in them, for a model that repeats its prompt.
import fs from 'node:fs';

const read = (name) => fs.readFileSync(new URL(`../../${name}`, import.meta.url), 'utf8');
/** Characters of an answer that its prompt ends with: enough for the model to find the place. */
const BEGUN = 48;
/** About 1,500 tokens. */
const DOCUMENT_CHARACTERS = 4200;

/** An answer from a page that stands in the prompt: its second half. */
function quote() {
  const page = read('docs/architecture.md').slice(0, DOCUMENT_CHARACTERS);
  const passage = page.slice(page.indexOf('\n', page.length / 2) + 1);
  return {
    prompt: `${page}\n\nWhat does the page say?\n${passage.slice(0, BEGUN)}`,
    outputTokens: 128,
  };
}

/** A document is written anew; `prediction` is an older one, in which every third version is another. */
function edit() {
  const file = read('package.json');
  const document = file.slice(file.indexOf('  "dependencies"')).slice(0, DOCUMENT_CHARACTERS);
  let versions = 0;
  const older = document.replace(/\d+(?=\.\d+")/g, (number) =>
    versions++ % 3 === 0 ? String(Number(number) + 1) : number,
  );
  return {
    prompt: `${document}\n\nThe document:\n${document.slice(0, BEGUN)}`,
    prediction: older.slice(BEGUN),
    outputTokens: 192,
  };
}

/** Name -> { prompt, prediction?, outputTokens }. */
export const REPEAT_TASKS = { 'quoting a page': quote(), 'editing a JSON document': edit() };
