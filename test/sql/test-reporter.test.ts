import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'

/** The reporter sets the exit code of a run, and failed files run a second time. */

const SUITES = {
  'a file that ends while it is loaded': `suite('file', async () => { await null; throw new Error('what failed') })`,
  'a hook after the last test': `suite('file', () => { test('holds', () => {}); after(() => { throw new Error('what failed') }) })`,
}
const createFolder = (): string => mkdtempSync(join(tmpdir(), 'reporter-'))

describe('a run', () => {
  for (const [name, body] of Object.entries(SUITES))
    test(`fails with ${name}, and reports the error`, () => {
      const { status, stdout, failed } = runReporter(body)
      assert.match(stdout, /failing tests:[\s\S]*what failed/)
      assert.match(stdout, /^ℹ fail 0$/m, 'node:test counts it by now: the reporter can be its own')
      assert.equal(status, 1)
      assert.deepEqual(failed, [{ file: 'file', name: 'file' }])
    })

  test('names each failed test with its file, and no suite around it', () => {
    const body = `suite('a.test.ts', () => {
      suite('inner', () => { test('fails', () => { throw new Error('no') }); test('holds', () => {}) })
      test('fails, too', () => { throw new Error('no') }) })
    suite('b.test.ts', () => { test('holds', () => {}) })`
    assert.deepEqual(runReporter(body).failed, [
      { file: 'a.test.ts', name: 'fails' },
      { file: 'a.test.ts', name: 'fails, too' },
    ])
  })

  test('succeeds if all tests pass', () => {
    const { status, stdout, failed } = runReporter(`suite('file', () => { test('holds', () => {}) })`)
    assert.match(stdout, /^ℹ pass 1$/m)
    assert.deepEqual([status, failed], [0, []])
  })
})

describe('the rerun of failed files', () => {
  const FLAKE = (mark: string): string => `import { existsSync, writeFileSync } from 'node:fs'
    import { test } from 'node:test'
    test('holds the second time', () => {
      if (existsSync('${mark}')) return
      writeFileSync('${mark}', '')
      throw new Error('the first time')
    })
    test('always holds', () => {})`

  test('lets a run pass if the failure does not recur, and counts it', () => {
    const { status, stdout, file } = runWithRerun((at) => FLAKE(join(at, 'mark')))
    assert.match(stdout, new RegExp(`^Failed, rerunning alone: ${file}$`, 'm'))
    assert.match(stdout, new RegExp(`^1 flaky: ${file}: holds the second time$`, 'm'))
    assert.equal(status, 0)
  })

  test('fails a run if the failure recurs', () => {
    const { status, stdout } = runWithRerun(
      () => `import { test } from 'node:test'\ntest('never holds', () => { throw new Error('no') })`,
    )
    assert.match(stdout, /rerunning alone/)
    assert.doesNotMatch(stdout, /flaky/)
    assert.equal(status, 1)
  })

  test('does not happen if all tests pass', () => {
    const { status, stdout } = runWithRerun(() => `import { test } from 'node:test'\ntest('holds', () => {})`)
    assert.doesNotMatch(stdout, /flaky|alone/)
    assert.equal(status, 0)
  })
})

// With `NODE_TEST_CONTEXT` set, node:test would report to a parent process.
const { NODE_TEST_CONTEXT: _, ...env } = process.env

interface ReporterRun {
  readonly status: number | null
  readonly stdout: string
  readonly failed: unknown
}

/** Runs suites with the reporter, in a new process. */
function runReporter(body: string): ReporterRun {
  const at = createFolder()
  const [file, failures] = [join(at, 'suite.mjs'), join(at, 'failures.json')]
  writeFileSync(file, `import { after, suite, test } from 'node:test'\n${body}\n`)
  const reporter = `--test-reporter=${import.meta.resolve('../reporter.ts')}`
  const options = { env: { ...env, TEST_FAILURES: failures }, encoding: 'utf8' } as const
  const { status, stdout } = spawnSync(process.execPath, ['--test', reporter, file], options)
  return { status, stdout, failed: JSON.parse(readFileSync(failures, 'utf8')) }
}

/** Runs a test file as `run.ts` does, without a database. */
function runWithRerun(write: (folder: string) => string): {
  status: number | null
  stdout: string
  file: string
} {
  const at = createFolder()
  const file = join(at, 'one.test.mjs')
  writeFileSync(file, write(at))
  const module = JSON.stringify(import.meta.resolve('../processes.ts'))
  const run = JSON.stringify({ files: [file], folder: at, processes: 1, env: {}, isCompiled: false })
  const script = `const { runWithRerun } = await import(${module}); process.exit(await runWithRerun(${run}))`
  const { status, stdout } = spawnSync(process.execPath, ['--input-type=module', '--eval', script], {
    env,
    encoding: 'utf8',
  })
  return { status, stdout, file }
}
