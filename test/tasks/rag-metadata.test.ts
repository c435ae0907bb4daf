import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createMetadataMerger } from '../../tasks/rag/file-metadata.ts'

/** Many patterns are tested against many files. */

test('metadata of many files need little memory', () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const heapSize = (): number => {
    collectGarbage()
    return process.memoryUsage().heapUsed
  }
  const patterns = Array.from({ length: 500 }, (_, i) => [`/folder/${i}.md`, { i }] as const)
  const merge = createMetadataMerger({ all: 1 }, [...patterns, ['*.md', { kind: 'text' }]])
  const before = heapSize()
  for (let i = 0; i < 2000; i++)
    assert.deepEqual(merge(`folder/${i}.md`), { all: 1, ...(i < 500 ? { i } : {}), kind: 'text' })
  // Without a limit, the matchers would keep 84 MB.
  assert.ok(heapSize() - before < 25e6)
  assert.deepEqual(merge('folder/7.md'), { all: 1, i: 7, kind: 'text' })
})
