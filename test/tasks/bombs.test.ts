import assert from 'node:assert/strict'
import { before, describe, test } from 'node:test'
import { createBombReaders } from '../bomb-readers.ts'
import { type Bomb, createIndexBombs, postBombs, zipBombs } from '../bombs.ts'
import { documentBombs } from '../document-bombs.ts'
import { recordingBombs } from '../recording-bombs.ts'

/** Runs one bomb of each mechanism. `long/bombs.test.ts` runs all of them. */

const readers = createBombReaders()
const { pool, importBomb, checkPosts, checkIndexed, checkDocument, importGoodPost, readGoodDocument } =
  readers

function pickBombs(bombs: readonly Bomb[], ...names: readonly string[]): Bomb[] {
  return names.map((name) => {
    const bomb = bombs.find((one) => one.name === name)
    assert.ok(bomb, `No bomb is named ${name}`)
    return bomb
  })
}

const POST_BOMBS = [
  'quotes on many lines', // CPU
  '9 million lists', // nesting
  'aliases of aliases', // expansion
  'a file of 60 MB that packs to nothing', // packing
  'names that are those of every object', // prototypes
]
const DOCUMENT_BOMBS = [
  'a document of 90 MB of paragraphs', // CPU: the child is killed
  'zeros that are packed five times', // memory
  'a million pages', // false page count
  'pages that hold themselves', // a cycle
  'entities of entities', // expansion
  'a document of 400 MB', // packing
  'a picture of 4 thousand million pixels', // size
  '20,000 frames', // frame count
]

describe('posts', () => {
  before(importGoodPost)
  for (const bomb of pickBombs([...postBombs, ...zipBombs], ...POST_BOMBS))
    test(bomb.name, () => checkPosts(bomb))

  test('an import has a CPU limit for all its files together', async () => {
    const [bomb] = pickBombs(zipBombs, 'files that take a second each')
    const outcome = await importBomb(bomb!, { limits: { cpuMs: 20_000 }, wholeCpuMs: 500 })
    assert.equal(outcome, 'The file cannot be imported: it takes more than 1 s of CPU time')
  })
})

describe('files to index', () => {
  for (const bomb of pickBombs(createIndexBombs(2 ** 17), 'headings as .md', 'open divisions as .html'))
    test(bomb.name, () => checkIndexed(bomb))
})

describe('documents', () => {
  before(readGoodDocument)
  for (const bomb of pickBombs(documentBombs, ...DOCUMENT_BOMBS)) test(bomb.name, () => checkDocument(bomb))
})

describe('recordings', () => {
  before(readers.cutGoodRecording)
  for (const bomb of pickBombs(
    recordingBombs,
    ...[
      'four thousand million samples',
      'a million frames of the smallest size',
      'a million pages without sound',
    ],
  ))
    test(bomb.name, () => readers.checkRecording(bomb))
})

test('the children still serve, and their memory stays small', async () => {
  await importGoodPost()
  await readGoodDocument()
  assert.ok(pool.rssBytes < 2 ** 30)
})
