// For TypeDoc: pages of docs/ -> guides of the site, named by their first heading, grouped and ordered as the README lists them.
import fs from 'node:fs';
import path from 'node:path';
import { Converter } from 'typedoc';

const root = path.resolve(import.meta.dirname, '..');

function headingOf(text) {
  const [, heading] = /^# (.*)\n/.exec(text) ?? [];
  return heading?.replaceAll('`', '');
}

/** Headings of the pages that a part of the README links to. */
function pagesIn(text) {
  const pages = [...text.matchAll(/\]\(((?:docs|native|models|examples)\/[^)#]*\.md|[A-Z]+\.md)\)/g)];
  return new Set(pages.map(([, page]) => headingOf(fs.readFileSync(path.join(root, page), 'utf8'))));
}

const [guides, background] = fs
  .readFileSync(path.join(root, 'README.md'), 'utf8')
  .split('\n## Docs\n')[1]
  .split('| to understand it |')
  .map(pagesIn);

export function load(app) {
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_context, document) => {
    const heading = headingOf(document.content.map(({ text }) => text).join(''));
    if (heading === undefined)
      throw new Error(`${document.name}: expected a page that begins with "# HEADING"`);
    document.name = heading;
    document.frontmatter.group = guides.has(heading)
      ? 'Guides'
      : background.has(heading)
        ? 'How it works'
        : 'Project';
  });
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    const [first] = project.readme ?? [];
    if (first) first.text = first.text.replace(/^# .*\n/, ''); // the page has the package's name as its heading
  });
}
