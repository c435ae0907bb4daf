import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OpenPagesOptions } from '../../tasks/context.ts'
import { createTestDatabase } from '../database.ts'
import { createExtractions, createPage } from './extract-help.ts'

/** Encodings of texts that extractions store, and types that they detect again. */

const database = await createTestDatabase()
const { query } = database
const { add, run } = createExtractions(database)
const ONE_PAGE = { pageCount: 1, read: () => createPage('text') }

const readEncodings = async (id: number) =>
  (await query('select encoding, given_encoding as given from document where id = $1', [id]))[0]

test('an extraction stores the encoding of a text, and keeps the one that the owner named', async () => {
  const id = await add('text')
  const given: (string | null | undefined)[] = []
  const extract = async (encoding: string | null, request: { given?: string; force?: boolean } = {}) => {
    const open = (options: OpenPagesOptions) => void given.push(options.encoding)
    return (await run(id, { ...ONE_PAGE, encoding, open, ...request })).result
  }
  await extract('windows-1252')
  assert.deepEqual(await readEncodings(id), { encoding: 'windows-1252', given: null })
  assert.deepEqual(await extract('koi8-r', { given: 'koi8-r' }), { read: 1, unread: 0, skipped: 0 })
  assert.deepEqual(await readEncodings(id), { encoding: 'koi8-r', given: 'koi8-r' })
  assert.deepEqual(await extract('koi8-r', { given: 'koi8-r' }), { read: 0, unread: 0, skipped: 1 })
  await extract('koi8-r', { force: true })
  await extract(null, { given: 'big5' })
  assert.deepEqual(await readEncodings(id), { encoding: 'koi8-r', given: 'koi8-r' })
  assert.deepEqual(given, [null, 'koi8-r', 'koi8-r', 'koi8-r', 'big5'])
})

test('force detects the type again, by the bytes and the title', async () => {
  const types: string[] = []
  const open = ({ mediaType }: OpenPagesOptions) => void types.push(mediaType)
  const readType = async (id: number) =>
    (await query('select media_type from document where id = $1', [id]))[0]!.media_type
  const page = await add('<table><tr><td>12,50</td></tr></table>')
  await query(`update document set media_type = 'text/plain', title = 'export.xls' where id = $1`, [page])
  await run(page, { ...ONE_PAGE, open })
  assert.equal(await readType(page), 'text/plain')
  await run(page, { ...ONE_PAGE, open, force: true })
  assert.equal(await readType(page), 'text/html')
  const notes = await add('# Notes')
  await query(`update document set media_type = 'text/markdown', title = 'Notes' where id = $1`, [notes])
  await run(notes, { ...ONE_PAGE, open, force: true })
  assert.equal(await readType(notes), 'text/markdown')
  assert.deepEqual(types, ['text/plain', 'text/html', 'text/markdown'])
})
