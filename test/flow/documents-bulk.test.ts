import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { createTestDatabase } from '../database.ts'
import { type Child, launchProcess } from '../service.ts'
import { until } from '../until.ts'
import * as crash from './crash.ts'
import { startReader } from './reader.ts'
import { getSharedService } from './shared-service.ts'

/** Bulk requests for several documents. */

const service = await getSharedService()
const [client, other] = [await service.client(), await service.client()]
// The tests kill workers, so this service is not shared. Its workers run no extractions.
const { url, query } = await createTestDatabase()
const reader = await startReader(url, { REQUEST_WAIT_SECONDS: '60' })
const startWorker = () => launchProcess('worker', url, { WORKER_QUEUES: 'system', ...crash.SHORT_LEASE })
let worker: Child | undefined
after(() => worker?.kill())

const PATH = '/api/v1/documents'
const upload = async (text: string, by = client): Promise<number> =>
  ((await (await by.upload(Buffer.from(text), 'a.txt')).json()) as { id: number }).id
const postBulk = async (body: object, query = '', by = client) => {
  const answer = await by.post(`${PATH}/bulk${query}`, body)
  return {
    status: answer.status,
    json: (await answer.json()) as { done: number; refused: object[]; job_id: string },
  }
}
const readTags = async (id: number) =>
  (await service.query('select tags from document where id = $1', [id]))[0]!.tags
const refusalOf = (id: number, code: string, detail: string) => ({ id, code, detail })
const missingDocument = (id: number) => refusalOf(id, 'document.missing', 'Document not found')

test('tags and untags documents, and names those it cannot change', async () => {
  const [one, two, full, foreign] = [
    await upload('one'),
    await upload('two'),
    await upload('full'),
    await upload('foreign', other),
  ]
  await service.query(
    `update document set tags = array(select 't' || n from generate_series(1, 100) n) where id = $1`,
    [full],
  )
  await service.query(`update document set tags = '{blue}' where id = $1`, [two])
  const ids = [two, one, full, foreign, 999_999, one]
  assert.deepEqual(await postBulk({ action: 'tag', ids, label: ' blue ' }), {
    status: 200,
    json: {
      done: 2,
      refused: [
        refusalOf(full, 'document.tags_full', 'A document can have at most 100 tags'),
        missingDocument(foreign),
        missingDocument(999_999),
      ],
    },
  })
  assert.deepEqual(
    [await readTags(one), await readTags(two), await readTags(foreign)],
    [['blue'], ['blue'], []],
  )
  const untagged = await postBulk({ action: 'untag', ids: [one, two, full, foreign], label: 'blue' })
  assert.deepEqual(untagged.json, { done: 3, refused: [missingDocument(foreign)] })
  assert.deepEqual([await readTags(one), await readTags(two)], [[], []])
})

test('extracts each document with a job of its own', async () => {
  const ids = [await upload('to be read'), await upload('to be read, too')]
  const lost = await upload('lost')
  await service.query('delete from blob where sha256 = (select sha256 from document where id = $1)', [lost])
  const { json } = await postBulk({ action: 'extract', ids: [...ids, lost, 999_999] })
  const gone = refusalOf(lost, 'document.bytes_missing', 'The document is missing from storage')
  assert.deepEqual(json, { done: 2, refused: [gone, missingDocument(999_999)] })
  await until('both documents are read', async () => {
    const pages = await service.query(
      `select from document_page where document_id = any($1) and status = 'read'`,
      [ids],
    )
    return pages.length === 2
  })
})

test('trashes or deletes documents and stops their extractions, except for protected ones', async () => {
  const [one, two, kept] = [await upload('1', reader), await upload('2', reader), await upload('3', reader)]
  await reader.fetch(`${PATH}/${kept}`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json' },
    body: '{"protected":true}',
  })
  await reader.post(`${PATH}/${one}/extract?background=true`)
  const { json } = await postBulk({ action: 'delete', ids: [one, two, kept] }, '?background=true', reader)
  const stream = await reader.stream(`/api/v1/jobs/${json.job_id}/events`)
  worker = await startWorker()
  const frames = await stream.waitForEnd()
  crash.assertComplete(frames)
  const stays = refusalOf(
    kept,
    'document.protected',
    'The document is protected; clear its "protected" flag first',
  )
  assert.deepEqual(frames.at(-1)!.data.result, { done: 2, refused: [stays] })
  const [row] = await query('select label, progress_total as total from job where id = $1', [json.job_id])
  assert.deepEqual(row, { label: 'Deleting documents', total: 3 })
  const extraction = await query(`select status from job where mailbox = $1`, [`document:${one}`])
  assert.deepEqual(extraction, [{ status: 'cancelled' }])
  const listTrash = async () =>
    ((await (await reader.fetch(`${PATH}?trashed=true`)).json()) as { items: { id: number }[] }).items.map(
      ({ id }) => id,
    )
  assert.deepEqual((await listTrash()).sort(), [one, two].sort())
  const again = await postBulk({ action: 'delete', ids: [one, two], permanent: true }, '', reader)
  assert.deepEqual(again.json, { done: 2, refused: [] })
  assert.deepEqual(await listTrash(), [])
  assert.deepEqual(
    (await postBulk({ action: 'delete', ids: [one] }, '', reader)).json,
    { done: 1, refused: [] },
    'it is gone already',
  )
})

test('after a worker is killed, the next one completes the job and counts all documents', async () => {
  const ids = (
    await query(`insert into document (owner_id, title, media_type, byte_size, sha256)
      select a.id, 'T', 'text/plain', 1, sha256(('many' || n)::bytea) from account a, generate_series(1, 1000) n
      where email = 'reader@example.com' returning id`)
  ).map(({ id }) => Number(id))
  const { json } = await postBulk({ action: 'tag', ids, label: 'many' }, '?background=true', reader)
  await until(
    'some documents are tagged',
    async () => (await query(`select from document where tags @> '{many}'`)).length > 0,
  )
  await worker!.kill()
  worker = await startWorker()
  const stream = await reader.stream(`/api/v1/jobs/${json.job_id}/events`)
  const frames = await stream.waitForEnd()
  assert.deepEqual(frames.at(-1)!.data.result, { done: 1000, refused: [] })
  assert.equal((await query(`select from document where tags = '{many}'`)).length, 1000)
})

test('limits the size of a request', async () => {
  for (const body of [
    {},
    { action: 'burn', ids: [1] },
    { action: 'tag', ids: [1] },
    { action: 'tag', ids: [1], label: ' ' },
    { action: 'delete', ids: [] },
    { action: 'delete', ids: Array(1001).fill(1) },
    { action: 'delete', ids: [0] },
    { action: 'delete', ids: ['1'] },
    { action: 'extract', ids: [1], label: 'x' },
  ])
    assert.equal((await postBulk(body)).status, 422, JSON.stringify(body))
})
