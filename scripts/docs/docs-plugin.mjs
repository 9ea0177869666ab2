// For TypeDoc: pages of docs/ -> guides of the site, named by their first heading, grouped and ordered as the README lists them.
import fs from 'node:fs';
import path from 'node:path';
import { Converter } from 'typedoc';

/** Guides come before fields and functions of the same name in the search. */
const GUIDE_BOOST = 5;
const root = path.resolve(import.meta.dirname, '../..');

function headingOf(text) {
  const [, heading] = /^# (.*)\n/.exec(text) ?? [];
  return heading?.replaceAll('`', '');
}

/** Headings of the pages that a part of the README links to. */
function pagesIn(text) {
  const pages = [...text.matchAll(/\]\(((?:docs|bench|native|models|examples)\/[^)#]*\.md|[A-Z]+\.md)\)/g)];
  return pages.map(([, page]) => headingOf(fs.readFileSync(path.join(root, page), 'utf8')));
}

/** Heading of a page -> its group, a part of the README's list. */
const groups = new Map(
  fs
    .readFileSync(path.join(root, 'README.md'), 'utf8')
    .split('\n## Docs\n')[1]
    .split('\n### ')
    .slice(1)
    .flatMap((part) => pagesIn(part).map((heading) => [heading, part.slice(0, part.indexOf('\n'))])),
);

export function load(app) {
  app.converter.on(Converter.EVENT_CREATE_DOCUMENT, (_context, document) => {
    const heading = headingOf(document.content.map(({ text }) => text).join(''));
    if (heading === undefined)
      throw new Error(`${document.name}: expected a page that begins with "# HEADING"`);
    document.name = heading;
    document.frontmatter.group = groups.get(heading) ?? 'Project';
    if (groups.has(heading)) document.relevanceBoost = GUIDE_BOOST;
  });
  app.converter.on(Converter.EVENT_RESOLVE_BEGIN, ({ project }) => {
    const [first] = project.readme ?? [];
    if (first) first.text = first.text.replace(/^# .*\n/, ''); // the page has the package's name as its heading
  });
}
