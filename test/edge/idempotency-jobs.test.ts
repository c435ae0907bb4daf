import assert from 'node:assert/strict'
import net from 'node:net'
import { test } from 'node:test'
import { deleteExpiredJobs } from '../../sql/jobs/prune.ts'
import { until } from '../until.ts'
import { type Answered, startEdge, startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/**
 * Tests blocking and background requests to routes that answer with a job's outcome, and repetitions with an
 * idempotency key.
 */

const { api, ...database } = await startEdgeAndDatabase()
const { query, url } = database
const impatientEdge = await startEdge(url, { env: { REQUEST_WAIT_SECONDS: '0' } })
const ledger = createLedger(database)
const { token, id: owner } = await api.register('owner@example.com')
const COUNTS = { read: 2, unread: 0, skipped: 1 }

let count = 0
const createDocument = async (): Promise<number> => (await api.upload(token, `document ${++count}`)).json.id
const extract = (document: number, query = '', headers = {}, edge = api): Promise<Answered> =>
  edge.post(`/api/v1/documents/${document}/extract${query}`, { token, headers })
const readJobIds = async (document: number): Promise<string[]> => {
  const rows = await query(`select id from job where payload ->> 'documentId' = $1 order by ordinal`, [
    String(document),
  ])
  return rows.map(({ id }) => id as string)
}
/** Waits for a document's job and claims it. */
const claimDocumentJob = async (document: number): Promise<string> => {
  const [id] = await until('the job exists', async () => {
    const ids = await readJobIds(document)
    return ids.length > 0 && ids
  })
  await ledger.claim(id!)
  return id!
}
/**
 * Repeats a request under its key until the edge has read the outcome of its finished job, and returns that answer.
 * Each earlier repetition waits 0.1 s and gets 409.
 */
const waitForOutcome = (document: number, query: string, headers: object): Promise<Answered> =>
  until('the edge has read the outcome', async () => {
    const answer = await extract(document, query, headers)
    return answer.status !== 409 && answer
  })

test('a request waits for its job and returns its result', async () => {
  const document = await createDocument()
  const waiting = extract(document)
  const id = await claimDocumentJob(document)
  await ledger.progress(id, 'Page 1 of 2', 1, 2)
  await ledger.finish(id, 'done', { result: COUNTS })
  const answer = await waiting
  assert.deepEqual([answer.status, answer.json], [200, COUNTS])
  const [row] = await query('select owner_id, request_id, payload from job where id = $1', [id])
  assert.deepEqual(row, {
    owner_id: owner,
    request_id: answer.headers['x-request-id'],
    payload: { force: false, documentId: document },
  })
})

test('background=true and Prefer: respond-async give 202 with the job immediately', async () => {
  for (const [search, headers] of [
    ['?background=true', {}],
    ['?background=1', {}],
    ['', { prefer: 'respond-async' }],
    ['', { prefer: 'wait=5, Respond-Async; x=1' }],
  ] as const) {
    const document = await createDocument()
    const answer = await extract(document, search, headers)
    assert.equal(answer.status, 202)
    assert.deepEqual(answer.json, { job_id: (await readJobIds(document))[0] })
    assert.equal(answer.headers.location, `/api/v1/jobs/${answer.json.job_id}`)
    assert.equal((await api.get(answer.headers.location as string, { token })).json.status, 'queued')
  }
})

test('background and force must be true or false', async () => {
  const document = await createDocument()
  for (const name of ['background', 'force']) {
    const answer = await extract(document, `?${name}=perhaps`)
    assert.deepEqual([answer.status, answer.json.errors[0].loc], [422, ['query', name]])
  }
  assert.deepEqual(await readJobIds(document), [])
})

test('a second request during the first joins its job, and both get the result', async () => {
  const document = await createDocument()
  const first = extract(document)
  const id = await claimDocumentJob(document)
  const joined = await extract(document, '?background=true')
  assert.deepEqual(joined.json, { job_id: id })
  const second = extract(document, '?force=false')
  await until('both requests wait', () => api.serving.edge.hub.watcherCount === 2)
  await ledger.finish(id, 'done', { result: COUNTS })
  assert.deepEqual([(await first).json, (await second).json], [COUNTS, COUNTS])
  assert.deepEqual(await readJobIds(document), [id])
})

test('after REQUEST_WAIT_SECONDS the answer is 202 with the job', async () => {
  const document = await createDocument()
  const answer = await extract(document, '', {}, impatientEdge)
  assert.deepEqual([answer.status, answer.json], [202, { job_id: (await readJobIds(document))[0] }])
})

test('a failed job makes the request fail', async () => {
  for (const [more, status, detail] of [
    [
      { code: 'document.bytes_missing', detail: 'The document is missing from storage' },
      502,
      /document is missing from storage/,
    ],
    [
      { code: 'job.crashed', detail: 'The worker thread crashed while running the job' },
      500,
      /worker thread crashed/,
    ],
    [{ code: 'of.another.version', detail: 'Something' }, 500, /Something/],
  ] as const) {
    const document = await createDocument()
    const waiting = extract(document)
    await ledger.finish(await claimDocumentJob(document), 'failed', more)
    const answer = await waiting
    assert.equal(answer.status, status)
    assert.deepEqual(Object.keys(answer.json), ['detail', 'code'])
    assert.match(answer.json.detail, detail)
  }
})

test('a job cancelled during a request makes it 409', async () => {
  const document = await createDocument()
  const waiting = extract(document)
  const [id] = await until(
    'the job exists',
    async () => (await readJobIds(document)).length === 1 && readJobIds(document),
  )
  await api.call('DELETE', `/api/v1/jobs/${id}`, { token })
  const answer = await waiting
  assert.deepEqual(
    [answer.status, answer.json],
    [409, { detail: 'The job was cancelled', code: 'job.cancelled' }],
  )
})

test("missing bytes are 502 and another owner's document 404; neither adds a job nor uses up a key", async () => {
  const document = await createDocument()
  const headers = { 'idempotency-key': 'lost' }
  await query('update blob set sha256 = null where sha256 = (select sha256 from document where id = $1)', [
    document,
  ])
  const lost = await extract(document, '', headers)
  assert.deepEqual(
    [lost.status, lost.json],
    [502, { detail: 'The document is missing from storage', code: 'document.bytes_missing' }],
  )
  await api.upload(token, `document ${count}`)
  assert.equal(
    (await extract(document, '?background=true', headers)).status,
    202,
    'healed by uploading the bytes again',
  )
  const stranger = await api.register('stranger@example.com')
  const foreign = await api.post(`/api/v1/documents/${document}/extract`, { token: stranger.token })
  assert.deepEqual(
    [foreign.status, foreign.json],
    [404, { detail: 'Document not found', code: 'document.missing' }],
  )
  assert.equal((await extract(999_999)).status, 404)
})

test('a background key gives the same job again, even after it ended, and no second one', async () => {
  const document = await createDocument()
  const headers = { 'idempotency-key': 'background' }
  const first = await extract(document, '?background=true', headers)
  const id = await claimDocumentJob(document)
  await ledger.finish(id, 'done', { result: COUNTS })
  const again = await extract(document, '?background=true', headers)
  assert.deepEqual(
    [again.status, again.json, again.headers.location],
    [202, first.json, first.headers.location],
  )
  assert.deepEqual(await readJobIds(document), [id])
  assert.equal((await extract(document, '?background=true&force=true', headers)).status, 422)
  assert.equal(
    (await extract(document, '?background=true')).status,
    202,
    'without the key it is a new request',
  )
  assert.equal((await readJobIds(document)).length, 2)
})

test('the key of a waiting request gives 409 until its result exists', async () => {
  const document = await createDocument()
  const headers = { 'idempotency-key': 'waiting' }
  const first = extract(document, '', headers)
  const id = await claimDocumentJob(document)
  assert.equal((await extract(document, '', headers)).status, 409)
  assert.equal((await extract(document, '?force=true', headers)).status, 422)
  await ledger.finish(id, 'done', { result: COUNTS })
  assert.deepEqual([(await first).status, (await first).json], [200, COUNTS])
  const again = await extract(document, '', headers)
  assert.deepEqual([again.status, again.json], [200, COUNTS])
  assert.deepEqual(await readJobIds(document), [id])
})

test('the key of a disconnected request gives 409 while the job runs, then its result', async () => {
  const document = await createDocument()
  const socket = net.connect(api.port, '127.0.0.1')
  socket.write(
    `POST /api/v1/documents/${document}/extract HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nIdempotency-Key: left\r\n\r\n`,
  )
  const id = await claimDocumentJob(document)
  await until('the request waits', () => api.serving.edge.hub.watcherCount === 1)
  socket.destroy()
  await until('the client has disconnected', () => api.serving.edge.hub.watcherCount === 0)
  const headers = { 'idempotency-key': 'left' }
  await new Promise((resolve) => setTimeout(resolve, 50))
  assert.equal((await extract(document, '', headers)).status, 409)
  await ledger.finish(id, 'done', { result: COUNTS })
  for (let i = 0; i < 2; i++) {
    const again = await waitForOutcome(document, '', headers)
    assert.deepEqual([again.status, again.json], [200, COUNTS])
  }
  assert.deepEqual(await readJobIds(document), [id])
})

/** Stores a first request under a key as if its edge had died before it answered. */
const addUnanswered = async (document: number, key: string): Promise<object> => {
  const headers = { 'idempotency-key': key }
  await extract(document, '?background=true', headers)
  await query(`update idempotency_key set status = null, headers = null, body = null where key = $1`, [key])
  return headers
}

test('the key of a request whose edge died gives the outcome of the job', async () => {
  const document = await createDocument()
  const headers = await addUnanswered(document, 'died')
  await ledger.finish(await claimDocumentJob(document), 'done', { result: COUNTS })
  const again = await waitForOutcome(document, '?background=true', headers)
  assert.deepEqual([again.status, again.json], [200, COUNTS])
  const [kept] = await query(`select status from idempotency_key where key = 'died'`)
  assert.equal(kept!.status, 200)
})

test('a job with an unclaimed answer under a key is kept until the key expires', async () => {
  const document = await createDocument()
  const headers = await addUnanswered(document, 'late')
  const id = await claimDocumentJob(document)
  await ledger.finish(id, 'done', { result: COUNTS })
  await query(`update job set finished_at = now() - interval '2 hours' where id = $1`, [id])
  const swept = async () => (await database.db.one(deleteExpiredJobs('others', [3600, 3600], 1000))).count
  assert.equal(await swept(), 0)
  const again = await waitForOutcome(document, '?background=true', headers)
  assert.deepEqual([again.status, again.json], [200, COUNTS])
  assert.equal(await swept(), 1)
  assert.deepEqual((await extract(document, '?background=true', headers)).json, COUNTS)

  const other = await createDocument()
  await addUnanswered(other, 'never')
  const ownJob = await claimDocumentJob(other)
  await ledger.finish(ownJob, 'done', { result: COUNTS })
  await query(`update job set finished_at = now() - interval '2 hours' where id = $1`, [ownJob])
  await query(`update idempotency_key set created_at = now() - interval '25 hours' where key = 'never'`)
  assert.equal(await swept(), 1)
})

test('a key does not report a running job if the job was deleted before its answer was read', async () => {
  const document = await createDocument()
  const headers = await addUnanswered(document, 'gone')
  await query('delete from job where id = $1', [await claimDocumentJob(document)])
  const again = await extract(document, '?background=true', headers)
  assert.deepEqual([again.status, again.json], [404, { detail: 'Job not found', code: 'job.missing' }])
  assert.deepEqual(await readJobIds(document), [])
  assert.equal((await extract(document, '?background=true&force=true', headers)).status, 422)
})
