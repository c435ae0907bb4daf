import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'

/** What `npm test` exits with when it is no test that fails, but what is around them. */

const SUITES = {
  'a file that ends while it is loaded': `suite('file', async () => { await null; throw new Error('what failed') })`,
  'a hook after the last test': `suite('file', () => { test('holds', () => {}); after(() => { throw new Error('what failed') }) })`,
}

describe('a run', () => {
  for (const [name, body] of Object.entries(SUITES))
    test(`fails with ${name}, and says with what`, () => {
      const { status, stdout } = run(body)
      assert.match(stdout, /failing tests:[\s\S]*what failed/)
      assert.match(stdout, /^ℹ fail 0$/m, 'node:test counts it by now: the reporter can be its own')
      assert.equal(status, 1)
    })

  test('of which all holds succeeds', () => {
    const { status, stdout } = run(`suite('file', () => { test('holds', () => {}) })`)
    assert.match(stdout, /^ℹ pass 1$/m)
    assert.equal(status, 0)
  })
})

function run(body: string): { status: number | null; stdout: string } {
  const file = join(mkdtempSync(join(tmpdir(), 'reporter-')), 'suite.mjs')
  writeFileSync(file, `import { after, suite, test } from 'node:test'\n${body}\n`)
  const reporter = `--test-reporter=${import.meta.resolve('../reporter.ts')}`
  // Without the mark of a process of node:test, which reports to its parent instead.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  return spawnSync(process.execPath, ['--test', reporter, file], { env, encoding: 'utf8' })
}
