import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { createBombReaders } from '../bomb-readers.ts'
import { createIndexBombs, postBombs, zipBombs } from '../bombs.ts'
import { documentBombs } from '../document-bombs.ts'
import { recordingBombs } from '../recording-bombs.ts'

/** Sends every bomb through its reader. `tasks/bombs.test.ts` has only one bomb of each mechanism. */

const readers = createBombReaders()
const { pool, checkPosts, checkIndexed, checkDocument, importGoodPost, readGoodDocument } = readers

describe('imported posts', () => {
  before(importGoodPost)
  for (const bomb of [...postBombs, ...zipBombs]) test(bomb.name, () => checkPosts(bomb))
})

describe('indexed files', () => {
  for (const bomb of createIndexBombs(2 ** 17)) test(bomb.name, () => checkIndexed(bomb))
})

describe('extracted documents', () => {
  before(readGoodDocument)
  for (const bomb of documentBombs) test(bomb.name, () => checkDocument(bomb))
})

describe('cut recordings', () => {
  before(readers.cutGoodRecording)
  for (const bomb of recordingBombs) test(bomb.name, () => readers.checkRecording(bomb))
})

test('the child processes still work, and their memory stays small', async () => {
  await importGoodPost()
  await readGoodDocument()
  assert.ok(pool.rssBytes < 2 ** 30)
})
