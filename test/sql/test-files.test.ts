import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { chosenFiles, inTurns } from '../files.ts'

/** Which files `npm test` runs, by what it is given. */

const all = chosenFiles([], false)

describe('the tests that a run is about', () => {
  test('are all that there are, each once', () => {
    assert.ok(all.length > 250)
    assert.deepEqual(inTurns(all).sort(), [...all].sort())
  })

  test('are those of a ring, of an area, of a file, or of several', () => {
    const edge = chosenFiles(['edge'], false)
    assert.ok(edge.length > 100 && edge.every((file) => file.startsWith('test/edge/')))
    const rag = chosenFiles(['rag'], false)
    assert.deepEqual(
      [...new Set(rag.map((file) => file.split('/')[1]))],
      ['edge', 'flow', 'sql', 'tasks'],
      'an area is in every ring that has something of it',
    )
    assert.ok(rag.includes('test/edge/rag.test.ts') && rag.includes('test/tasks/rag-chunks.test.ts'))
    const file = 'test/edge/auth.test.ts'
    assert.deepEqual(chosenFiles([file], false), [file])
    assert.deepEqual(chosenFiles([file, 'auth'], false), [file, 'test/edge/auth-areas.test.ts'])
  })

  test('a name that finds nothing is told, not passed over', () => {
    assert.throws(() => chosenFiles(['documnets'], false), /No test is named documnets/)
    assert.throws(() => chosenFiles(['test/edge/none.test.ts'], false), /No test is named/)
  })

  test('are in a long run those that go on for longer there', () => {
    const long = chosenFiles([], true)
    assert.ok(long.includes('test/edge/orgs-model.test.ts') && long.length < 40)
    for (const file of long) assert.match(readFileSync(file, 'utf8'), /from '\.\.\/runs\.ts'/)
  })
})
