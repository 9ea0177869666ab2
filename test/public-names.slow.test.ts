/** The names that the package exports, and the files behind them, stay as they are: a change of `golden/public-names.json` is a change for users. */
import fs from 'node:fs';
import path from 'node:path';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';

const ROOT = path.resolve(import.meta.dirname, '..');
const { exports: entries } = JSON.parse(fs.readFileSync(path.join(ROOT, 'package.json'), 'utf8')) as {
  exports: Record<string, { types: string } | string>;
};

/** Entry -> the source file whose declarations it is. */
const sources = Object.entries(entries).flatMap(([entry, target]) =>
  typeof target === 'string'
    ? []
    : [[entry, path.join(ROOT, target.types.replace('./dist/', 'src/').replace('.d.ts', '.ts'))] as const],
);

/** The exported names of an entry, values and types apart. */
function namesOf(program: ts.Program, file: string): { values: string[]; types: string[] } {
  const checker = program.getTypeChecker();
  const symbol = checker.getSymbolAtLocation(program.getSourceFile(file)!)!;
  const names = { values: [] as string[], types: [] as string[] };
  for (const exported of checker.getExportsOfModule(symbol)) {
    const target = exported.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(exported) : exported;
    const isTypeOnly = exported.declarations?.some(
      (declaration) =>
        ts.isExportSpecifier(declaration) && (declaration.isTypeOnly || declaration.parent.parent.isTypeOnly),
    );
    const isValue = !isTypeOnly && (target.flags & ts.SymbolFlags.Value) !== 0;
    names[isValue ? 'values' : 'types'].push(exported.name);
  }
  return { values: names.values.sort(), types: names.types.sort() };
}

describe('the public names', () => {
  it('are those of golden/public-names.json', { timeout: 120_000 }, async () => {
    const program = ts.createProgram(
      sources.map(([, file]) => file),
      {
        allowImportingTsExtensions: true,
        noEmit: true,
        module: ts.ModuleKind.NodeNext,
        target: ts.ScriptTarget.ES2022,
        types: [],
      },
    );
    const found = Object.fromEntries(sources.map(([entry, file]) => [entry, namesOf(program, file)]));
    expect(found['.']!.values).toContain('createCompletion');
    await expect(`${JSON.stringify(found, null, 2)}\n`).toMatchFileSnapshot('golden/public-names.json');
  });
});
