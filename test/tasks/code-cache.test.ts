import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'

/** Runs small programs next to a copy of `code-cache.ts`. Each program has its own temporary folder. */

const base = mkdtempSync(join(tmpdir(), 'code-cache-'))
after(() => rmSync(base, { recursive: true, force: true }))

let count = 0
function createProgram() {
  const root = join(base, String(++count))
  const temporary = join(root, 'tmp')
  mkdirSync(join(root, 'tasks/platform'), { recursive: true })
  mkdirSync(temporary)
  copyFileSync(
    new URL('../../tasks/platform/code-cache.ts', import.meta.url),
    join(root, 'tasks/platform/code-cache.ts'),
  )
  writeFileSync(join(root, 'package.json'), '{ "type": "module" }')
  const main =
    "import { enableCodeCache } from './tasks/platform/code-cache.ts'\nenableCodeCache()\nawait import('./said.ts')\n"
  writeFileSync(join(root, 'main.ts'), main)
  const writeSaid = (code: string): void => writeFileSync(join(root, 'said.ts'), code)
  writeSaid("const word: string = 'one'\nconsole.log(word)\n")
  return {
    temporary,
    say: writeSaid,
    own: join(temporary, `millrace-code-${process.getuid?.() ?? 'all'}`),
    kept: () => globSync('**/stripped/*', { cwd: root }).map((file) => join(root, file)),
    run: (options: { flags?: string[]; env?: NodeJS.ProcessEnv } = {}) =>
      execFileSync(
        process.execPath,
        ['--disable-warning=ExperimentalWarning', ...(options.flags ?? []), join(root, 'main.ts')],
        {
          encoding: 'utf8',
          env: { PATH: process.env.PATH, TMPDIR: temporary, TEMP: temporary, ...options.env },
        },
      ).trim(),
  }
}

describe('stripped files', () => {
  test('are stored by the first start, and reused by the next', () => {
    const { run, kept } = createProgram()
    assert.equal(run(), 'one')
    const files = kept()
    assert.equal(files.length, 1)
    const text = readFileSync(files[0]!, 'utf8')
    assert.match(text, /const word {9}= 'one'/)
    assert.equal(run(), 'one')
    assert.deepEqual(kept(), files)
    assert.equal(readFileSync(files[0]!, 'utf8'), text)
  })

  test('are replaced if the source has changed', () => {
    const { run, say, kept } = createProgram()
    assert.equal(run(), 'one')
    say("const word: string = 'two'\nconsole.log(word)\n")
    assert.equal(run(), 'two')
    assert.equal(kept().length, 1)
  })

  test('are replaced if they are damaged', () => {
    const { run, kept } = createProgram()
    run()
    const [file] = kept()
    const text = readFileSync(file!, 'utf8')
    for (const damaged of [
      '',
      text.slice(0, -20),
      text.replace("'one'", "'bad'"),
      '\0'.repeat(text.length),
    ]) {
      writeFileSync(file!, damaged)
      assert.equal(run(), 'one')
      assert.equal(readFileSync(file!, 'utf8'), text)
    }
  })

  test('keep their positions in stack traces', () => {
    const { run, say } = createProgram()
    say(
      "interface Word { text: string }\nconst at = (word: Word): string => new Error(word.text).stack!\nconsole.log(/said\\.ts:(\\d+:\\d+)/.exec(at({ text: 'here' }))![1])\n",
    )
    const place = run({ env: { NODE_DISABLE_COMPILE_CACHE: '1' } })
    assert.match(place, /^2:\d+$/)
    assert.equal(run(), place)
    assert.equal(run(), place)
  })
})

describe('the code runs without a cache', () => {
  test('if other users could write to its folder, or might have', {
    skip: process.getuid === undefined,
  }, () => {
    for (const mode of [0o770, 0o707, 0o777]) {
      const { run, own, kept } = createProgram()
      mkdirSync(own)
      chmodSync(own, mode)
      assert.equal(run(), 'one')
      assert.deepEqual([kept(), globSync(`${own}/*`)], [[], []])
    }
    const { run, own, temporary, kept } = createProgram()
    const elsewhere = join(temporary, 'elsewhere')
    mkdirSync(elsewhere, { mode: 0o700 })
    symlinkSync(elsewhere, own)
    assert.equal(run(), 'one')
    assert.deepEqual([kept(), globSync(`${elsewhere}/*`)], [[], []])
  })

  test('where there is no room', () => {
    const { run, kept } = createProgram()
    assert.equal(run({ env: { TMPDIR: '/nowhere/at/all', TEMP: '/nowhere/at/all' } }), 'one')
    assert.deepEqual(kept(), [])
  })

  test("if Node's cache is disabled", () => {
    const { run, kept } = createProgram()
    assert.equal(run({ env: { NODE_DISABLE_COMPILE_CACHE: '1' } }), 'one')
    assert.deepEqual(kept(), [])
  })

  test('if another loader is requested', () => {
    const { run, kept } = createProgram()
    const loader = 'data:text/javascript,'
    assert.equal(run({ flags: ['--import', loader] }), 'one')
    assert.equal(run({ env: { NODE_OPTIONS: `--import=${loader}` } }), 'one')
    assert.deepEqual(kept(), [])
  })
})

test('NODE_COMPILE_CACHE sets the folder', () => {
  const { run, temporary, kept } = createProgram()
  const folder = join(temporary, 'chosen')
  assert.equal(run({ env: { NODE_COMPILE_CACHE: folder } }), 'one')
  assert.equal(kept().length, 1)
  assert.ok(kept()[0]!.startsWith(folder))
})

test('every process and command caches its code before it loads other modules', () => {
  const fileAt = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8')
  const commands = `${fileAt('package.json')}\n${fileAt('Procfile')}`
  const mains = new Set(
    [...commands.matchAll(/\b(?:edge|tasks|workers)\/[\w/-]+\.ts\b/g)].map(([path]) => path),
  )
  assert.ok(mains.size >= 8)
  for (const main of mains) {
    const imported = [...fileAt(main).matchAll(/^import (?!type).*$/gm)].map(([line]) => line)
    assert.deepEqual(
      [
        imported.length,
        /enableCodeCache.*\/code-cache\.ts'$/.test(imported[0]!),
        /^enableCodeCache\(\)$/m.test(fileAt(main)),
      ],
      [1, true, true],
      main,
    )
  }
})
