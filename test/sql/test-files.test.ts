import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { findAffectedTests } from '../changed.ts'
import { interleaveRings, listAllFiles, selectFiles } from '../files.ts'

/** A test run selects its files from its arguments. */

const all = selectFiles([], 'quick')
const ringsOf = (files: readonly string[]): string[] => [...new Set(files.map((file) => file.split('/')[1]!))]

describe('the files of a run', () => {
  test('are each file of the quick rings once', () => {
    assert.ok(all.length > 250)
    assert.deepEqual(ringsOf(all).sort(), ['edge', 'sql', 'tasks', 'workers'])
    assert.deepEqual(interleaveRings(all).sort(), [...all].sort())
  })

  test('are those of a ring, an area, a file, or several', () => {
    const edge = selectFiles(['edge'], 'quick')
    assert.ok(edge.length > 100 && edge.every((file) => file.startsWith('test/edge/')))
    const flow = selectFiles(['flow'], 'quick')
    assert.ok(flow.length > 50 && flow.every((file) => file.startsWith('test/flow/')))
    const rag = selectFiles(['rag'], 'quick')
    assert.deepEqual(ringsOf(rag), ['edge', 'flow', 'sql', 'tasks'], 'an area is in every ring')
    assert.ok(rag.includes('test/edge/rag.test.ts') && rag.includes('test/tasks/rag-chunks.test.ts'))
    const file = 'test/edge/auth.test.ts'
    assert.deepEqual(selectFiles([file], 'quick'), [file])
    assert.deepEqual(selectFiles([file, 'auth'], 'quick'), [file, 'test/edge/auth-areas.test.ts'])
  })

  test('cause an error for a name without a match', () => {
    assert.throws(() => selectFiles(['documnets'], 'quick'), /No test is named documnets/)
    assert.throws(() => selectFiles(['test/edge/none.test.ts'], 'quick'), /No test is named/)
  })

  test('with a fixed seed include the long ring and the randomized tests of the quick rings', () => {
    const fixed = selectFiles([], 'fixed')
    for (const file of [
      'test/long/bombs.test.ts',
      'test/long/nemesis.test.ts',
      'test/edge/orgs-model.test.ts',
    ])
      assert.ok(fixed.includes(file), file)
    assert.ok(fixed.every((file) => !file.startsWith('test/flow/')) && fixed.length < 50)
  })

  test('of a long run include the long ring and all randomized tests', () => {
    const long = selectFiles([], 'long')
    for (const file of [...selectFiles([], 'fixed'), 'test/flow/mail.test.ts'])
      assert.ok(long.includes(file), file)
    assert.ok(long.length < 80)
    for (const file of long)
      if (!file.startsWith('test/long/')) assert.match(readFileSync(file, 'utf8'), /from '\.\.\/runs\.ts'/)
  })

  test('run in exactly one part of `npm run check`', () => {
    const rings = selectFiles(['flow', 'browser'], 'quick')
    const parts = [...all, ...rings, ...selectFiles([], 'fixed')]
    assert.deepEqual([...new Set(parts)].sort(), listAllFiles().sort())
  })
})

describe('the files that a change affects', () => {
  const selectFiles = (...changed: string[]): string[] => [...findAffectedTests(changed)].sort()

  test('are a changed test, and tests that import a changed helper', () => {
    assert.ok(selectFiles('test/edge/blog-slugs.test.ts').includes('test/edge/blog-slugs.test.ts'))
    const files = selectFiles('test/edge/totp-help.ts')
    assert.ok(files.includes('test/edge/totp.test.ts') && !files.includes('test/edge/blog-slugs.test.ts'))
  })

  test('are those of its area if only a registry leads to it, and those about all areas', () => {
    const files = selectFiles('edge/routes/blog/posts.ts')
    for (const file of [
      'test/edge/blog-posts.test.ts',
      'test/edge/matrix.test.ts',
      'test/flow/blog-import.test.ts',
    ])
      assert.ok(files.includes(file), file)
    assert.ok(!files.includes('test/edge/documents-list.test.ts') && files.length < 60)
  })

  test('are the callers of an SQL function, and all database tests for a table', () => {
    const callers = selectFiles('sql/documents/functions/search_terms.sql')
    assert.ok(callers.includes('test/edge/documents-search.test.ts'))
    assert.ok(!callers.includes('test/sql/totp.test.ts'))
    assert.ok(selectFiles('sql/payments/tables.sql').includes('test/sql/totp.test.ts'))
  })

  test('are those that name a file without code, or all if none does', () => {
    const files = selectFiles('Procfile')
    assert.ok(files.includes('test/tasks/procfile.test.ts') && files.length < 30)
    const unnamed = `sql/${['named', 'by', 'nobody'].join('-')}.txt`
    assert.equal(selectFiles(unnamed).length, listAllFiles().length)
  })

  test('are none for no change', () => assert.deepEqual(selectFiles(), []))
})
