import { type Packed, packRepeat } from './packing.ts'
import { createZip } from './zip.ts'

/** Small hostile files that are deeply nested, long, numerous, quadratic, cyclic, or huge once decompressed. */

export interface Bomb {
  readonly name: string
  readonly fileName: string
  /** Builds the content on demand, because some bombs take tens of megabytes. */
  readonly make: () => Buffer
}

const createTextBomb = (name: string, fileName: string, make: () => string): Bomb => ({
  name,
  fileName,
  make: () => Buffer.from(make()),
})
const createFrontMatterBomb = (name: string, make: () => string): Bomb =>
  createTextBomb(name, 'bomb.md', () => `---\n${make()}\n---\nbody`)
const createTomlBomb = (name: string, make: () => string): Bomb =>
  createTextBomb(name, 'bomb.md', () => `+++\n${make()}\n+++\nbody`)
const createJsonBomb = (name: string, make: () => string): Bomb => createTextBomb(name, 'bomb.json', make)

const createJsonItem = (fields: string): string => `[{"title":"t","slug":"s","content":"c",${fields}}]`

/** Bombs for the import of posts. */
export const postBombs: readonly Bomb[] = [
  createFrontMatterBomb('100,000 brackets in YAML', () => `title: ${'['.repeat(100_000)}`),
  createFrontMatterBomb('50,000 maps in maps', () => '{a: '.repeat(50_000)),
  createFrontMatterBomb('20,000 quotes', () => `title: ${'"'.repeat(20_000)}`),
  createFrontMatterBomb('200,000 quotes', () => `title: ${'"'.repeat(200_000)}`),
  createFrontMatterBomb('quotes on many lines', () => `title: ${'"'.repeat(9_000)}\n`.repeat(28)),
  createFrontMatterBomb('lists in lists by dashes', () => '- '.repeat(100_000)),
  createFrontMatterBomb('keys in keys by question marks', () => '? '.repeat(100_000)),
  createFrontMatterBomb('lists in lists by indentation', () =>
    Array.from({ length: 700 }, (_, i) => `${' '.repeat(i)}a:`).join('\n'),
  ),
  createFrontMatterBomb('aliases of aliases', () =>
    Array.from({ length: 30 }, (_, i) => `k${i}: &a${i} [${`*a${i - 1},`.repeat(i === 0 ? 0 : 10)}x]`).join(
      '\n',
    ),
  ),
  createFrontMatterBomb('a list that holds itself', () => 'tags: &a [*a, *a]'),
  createFrontMatterBomb('60,000 keys', () =>
    Array.from({ length: 30_000 }, (_, i) => `k${i}: 1`)
      .join('\n')
      .slice(0, 250_000),
  ),
  createFrontMatterBomb('100,000 tags', () => `tags: [${'a,'.repeat(100_000)}a]`),
  createFrontMatterBomb('tags in brackets', () => `tags: [${'[a],'.repeat(50_000)}a]`),
  createFrontMatterBomb('a date of digits', () => `date: ${'1'.repeat(9_000)}`),
  createFrontMatterBomb('a date of signs', () => `date: ${'1-'.repeat(4_500)}`),
  createFrontMatterBomb('colons', () => ': '.repeat(120_000)),
  createFrontMatterBomb('block scalars', () => 'a: |\n \n'.repeat(30_000)),
  createFrontMatterBomb('a comment on each line', () => '#\n'.repeat(120_000)),
  createTomlBomb('lists in lists in TOML', () => `a = ${'['.repeat(100_000)}`),
  createTomlBomb('tables in tables', () => `a = ${'{a='.repeat(50_000)}`),
  createTomlBomb('a key of 50,000 parts', () => `${'a.'.repeat(50_000)}a = 1`),
  createTomlBomb('tables without end', () => '[[a]]\n'.repeat(40_000)),
  createTomlBomb('quotes in TOML', () => `a = ${'"'.repeat(200_000)}`),
  createJsonBomb('9 million lists', () => '['.repeat(9_000_000)),
  createJsonBomb('a tree of 18 MB', () => `[${'{"a":'.repeat(3_600_000)}`),
  createJsonBomb('a title of 19 MB', () => `[{"title":"${'é '.repeat(6_300_000)}","content":"c"}]`),
  createJsonBomb('a slug of 18 MB', () => createJsonItem(`"slug":"${'a'.repeat(18_000_000)}"`)),
  createJsonBomb('tags of 18 MB', () => createJsonItem(`"tag_slugs":["${'a,'.repeat(9_000_000)}"]`)),
  createJsonBomb('5 million tags', () => createJsonItem(`"tag_slugs":[${'"a",'.repeat(4_500_000)}"a"]`)),
  createJsonBomb('a date of 18 MB', () => createJsonItem(`"created_at":"${'9'.repeat(18_000_000)}"`)),
  createJsonBomb('an address of 18 MB', () =>
    createJsonItem(`"hero_image_url":"/${'a/'.repeat(9_000_000)}"`),
  ),
  createJsonBomb('6 million items', () => `[${'{},'.repeat(6_000_000)}{}]`),
  createJsonBomb(
    'a million keys',
    () => `[{${Array.from({ length: 1_000_000 }, (_, i) => `"k${i}":1`).join()}}]`,
  ),
  createTextBomb('a heading of spaces', 'bomb.md', () => `# a${' '.repeat(9_990)}x\n${'# \t'.repeat(1_000)}`),
  createTextBomb(
    'a text of 4 MB without an end to its first line',
    'bomb.md',
    () => `title: ${'a: '.repeat(1_300_000)}`,
  ),
  createTextBomb('JSON before a text, without an end', 'bomb.md', () => `{"a":"${'\\"'.repeat(2_000_000)}`),
  createTextBomb('lines that go on', 'bomb.md', () => `title: x\n${' a\n'.repeat(1_300_000)}`),
]

const createZipBomb = (
  name: string,
  files: () => readonly (readonly [path: string, text: string | Packed])[],
): Bomb => ({
  name,
  fileName: 'bomb.zip',
  make: () => createZip(files()),
})

const QUOTED_POST = `---\ntitle: ${'"'.repeat(9_000)}\n---\n`

/** Zip bombs for the import of posts. */
export const zipBombs: readonly Bomb[] = [
  createZipBomb('a file of 60 MB that packs to nothing', () => [['a.md', packRepeat('a', 60_000_000)]]),
  createZipBomb('files of 4 MB that pack to nothing', () => {
    const file = packRepeat('a', 4_000_000)
    return Array.from({ length: 140 }, (_, i) => [`${i}.md`, file] as const)
  }),
  createZipBomb('100,001 files', () => Array.from({ length: 100_001 }, (_, i) => [`${i}.md`, 'x'] as const)),
  createZipBomb('files that take a second each', () =>
    Array.from({ length: 200 }, (_, i) => [`${i}.md`, QUOTED_POST] as const),
  ),
  createZipBomb('a language of 5 MB', () => [['a.md', `---${'a'.repeat(4_900_000)}\n---\n`]]),
  createZipBomb('names that are those of every object', () => [
    ['a.md', '---constructor\n---\n'],
    ['b.md', '---\nstatus: constructor\n---\n'],
    ['c.md', '---\nstatus: __proto__\n__proto__: {a: 1}\n---\n'],
  ]),
  createZipBomb('folders in folders', () => [[`${'a/'.repeat(30_000)}b.md`, 'x']]),
]

/** Returns bombs for the indexer. Each repeats a unit up to `bytes`, in one of several text formats. */
export const createIndexBombs = (bytes: number): readonly Bomb[] =>
  REPEATED_UNITS.flatMap(([name, unit]) =>
    ['txt', 'md', 'py', 'html'].map((extension) =>
      createTextBomb(`${name} as .${extension}`, `bomb.${extension}`, () =>
        unit.repeat(Math.floor(bytes / Buffer.byteLength(unit))),
      ),
    ),
  )

const REPEATED_UNITS: readonly (readonly [name: string, unit: string])[] = [
  ['newlines', '\n'],
  ['spaces', ' '],
  ['quotes in threes', '"""'],
  ['quotes in threes, a line each', '"""\n'],
  ['number signs', '#'],
  ['headings', '# a\n'],
  ['open brackets', '['],
  ['fences', '```\n'],
  ['one letter', 'a'],
  ['words', 'a b '],
  ['open divisions', '<div>'],
  ['angle brackets', '<'],
  ['comments', '<!--'],
  ['functions', 'def f():\n'],
  ['functions in functions', ' def f():\n  '],
  ['braces', '{\n'],
  ['hyphens', '-\n'],
  ['full stops', '. '],
  ['combining marks', 'ͣͣ'],
  ['Chinese', '中'],
]
