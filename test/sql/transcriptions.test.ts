import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type Client, connect } from '../../sql/connections/driver.ts'
import { uuidv7 } from '../../sql/ids.ts'
import { claimJobs, parseClaims } from '../../sql/jobs/claims.ts'
import { cancelJobs, endAttempts, enqueueJobs } from '../../sql/jobs/jobs.ts'
import {
  beginTranscription,
  cancelTranscription,
  deleteTranscription,
  insertTranscription,
  listTranscriptionPieces,
  readTranscription,
  readTranscriptions,
} from '../../sql/voice/transcriptions.ts'
import { buildJobSpecs } from '../../tasks/task.ts'
import { transcribe } from '../../tasks/voice/transcribe.task.ts'
import { createTestDatabase } from '../database.ts'
import { createJobSettings } from '../job-settings.ts'
import { storeProgress } from './ledger-help.ts'
import { assertReadByIndex, assertWriteByIndex } from './plans-help.ts'

/** The end of a job settles its transcription, however the job ended, and counts usage. */

const { db, query, url } = await createTestDatabase()
const LEASE = uuidv7()
await query(
  `insert into worker_lease (id, name, queues, expires_at) values ($1, 'w', '{voice}', now() + interval '1 hour')`,
  [LEASE],
)
const [account] = await query(
  `insert into account (email, password_hash) values ('a@example.com', 'x') returning id`,
)
const owner = account!.id as number

interface Transcription {
  readonly id: string
  readonly jobId: string
  readonly documentId: number
  readonly ownerId: number | null
}

let documents = 0
const payloadOf = (id: string, documentId: number) => ({
  transcription_id: id,
  document_id: documentId,
  provider: 'openai' as const,
  model: 'whisper-1',
  language: null,
  prompt_sha256: null,
})
async function addTranscription(ownerId: number | null = owner): Promise<Transcription> {
  const [id, documentId] = [uuidv7(), ++documents]
  const jobId = await addJob(id, documentId, ownerId)
  const asked = { provider: 'openai', model: 'whisper-1', language: 'de', prompt: 'Zoë' }
  await db.run(insertTranscription({ id, ownerId, documentId, jobId, ...asked }))
  return { id, jobId, documentId, ownerId }
}
async function addJob(id: string, documentId: number, ownerId: number | null): Promise<string> {
  const specs = buildJobSpecs(transcribe, [payloadOf(id, documentId)], {
    ownerId,
    settings: createJobSettings(3),
  })
  return (await db.one(enqueueJobs(specs, 0))).job_id
}

async function claimJob({ jobId, documentId }: Pick<Transcription, 'jobId' | 'documentId'>): Promise<number> {
  const mailbox = `transcription:${documentId}`
  const delivery = { task: transcribe.name, mailbox, limit: 1, first: 0, id: jobId, owner: null }
  const [claimed] = parseClaims(await db.one(claimJobs(LEASE, [{ delivery, freeSlots: 1 }])))
  assert.equal(claimed!.id, jobId)
  return claimed!.attempt
}
const beginCall = ({ id, jobId }: Transcription) => db.maybeOne(beginTranscription(id, jobId))
const reportUsage = (id: string, attempt: number, more: object = {}) =>
  db.any(
    storeProgress([
      {
        ...{ id, attempt, n: 1, kind: 'usage' },
        data: {
          ...{ input_tokens: 3, output_tokens: 4, audio_seconds: 5.5, cost: '0.00055', estimated: false },
          ...{ success: true, ...more },
        },
      },
    ]),
  )
const RESULT = {
  text: 'Hallo',
  language: 'de',
  duration_seconds: 5.25,
  segments: [{ start: 0, end: 5.25, text: 'Hallo', speaker: null }],
  usage: { input_tokens: null, output_tokens: null, audio_seconds: 5.5 },
  cost: 0.00055,
  finished_at: '2026-01-02T03:04:05.678Z',
}
const finishJob = (of: Transcription, attempt: number) =>
  endAttempts(db, [{ id: of.jobId, attempt, outcome: 'done', result: JSON.stringify(RESULT) }])
const loseLease = (of: Transcription, attempt: number) =>
  endAttempts(db, [
    {
      ...{ id: of.jobId, attempt, outcome: 'failed' as const },
      ...{ code: 'ai.refused', detail: 'no' },
    },
  ])
const readShown = async ({ id }: Transcription) => {
  const text = (await query(readTranscription.text, [id, null, true]))[0]
  return text === undefined ? null : JSON.parse(Object.values(text)[0] as string)
}
const readUsage = async () =>
  query(
    `select owner_id, user_id, action, vendor, model, input_tokens::int as input, audio_seconds::float8 as audio, cost::float8 as cost,
      estimated, success from ai_usage order by id`,
  )
const COMMON_USAGE = {
  user_id: String(owner),
  owner_id: owner,
  action: 'transcription',
  vendor: 'openai',
  model: 'whisper-1',
}
const REPORTED_USAGE = {
  ...COMMON_USAGE,
  input: 3,
  audio: 5.5,
  cost: 0.00055,
  estimated: false,
  success: true,
}
const UNKNOWN_USAGE = { ...COMMON_USAGE, input: 0, audio: 0, cost: null, estimated: true, success: false }
const clearUsage = () => query('delete from ai_usage')

describe('settling a transcription', () => {
  test('stores the result of its job, with the time in the result', async () => {
    await clearUsage()
    const of = await addTranscription()
    assert.equal((await readShown(of)).status, 'pending')
    const attempt = await claimJob(of)
    const found = await beginCall(of)
    assert.deepEqual([found!.requested_language, found!.prompt, found!.shown], ['de', 'Zoë', false])
    await reportUsage(of.jobId, attempt)
    await finishJob(of, attempt)
    const { created_at, ...rest } = await readShown(of)
    assert.match(created_at, /Z$/)
    assert.deepEqual(rest, {
      ...{ id: of.id, status: 'done', job_id: of.jobId, document_id: of.documentId },
      ...{ provider: 'openai', model: 'whisper-1', requested_language: 'de', error: null, ...RESULT },
    })
    assert.deepEqual(await readUsage(), [REPORTED_USAGE])
  })

  test('without an owner', async () => {
    await clearUsage()
    const of = await addTranscription(null)
    const attempt = await claimJob(of)
    await beginCall(of)
    await reportUsage(of.jobId, attempt, { cost: null })
    await finishJob(of, attempt)
    assert.deepEqual(await readUsage(), [
      { ...REPORTED_USAGE, owner_id: null, user_id: 'api-user', cost: null },
    ])
  })

  test('stores a failure, and the usage of each request', async () => {
    await clearUsage()
    const of = await addTranscription()
    const first = await claimJob(of)
    await beginCall(of)
    await reportUsage(of.jobId, first, { success: false, cost: '0' })
    await endAttempts(db, [{ id: of.jobId, attempt: first, outcome: 'release' }])
    assert.equal((await readShown(of)).status, 'pending')
    const second = await claimJob(of)
    await beginCall(of)
    await reportUsage(of.jobId, second, { success: false, cost: null, estimated: true })
    await loseLease(of, second)
    const { status, error, text, segments, cost } = await readShown(of)
    assert.deepEqual(
      { status, error, text, segments, cost },
      { status: 'failed', error: { code: 'ai.refused', detail: 'no' }, text: null, segments: [], cost: null },
    )
    assert.deepEqual(
      (await readUsage()).map(({ cost, success }) => [cost, success]),
      [
        [0, false],
        [null, false],
      ],
    )
  })

  test('stores a cancellation before the start, without usage', async () => {
    await clearUsage()
    const of = await addTranscription()
    await db.run(cancelJobs([of.jobId]))
    assert.equal((await readShown(of)).status, 'cancelled')
    assert.deepEqual(await readUsage(), [])
  })

  test('stores a failure before any request, without usage', async () => {
    await clearUsage()
    const of = await addTranscription()
    await loseLease(of, await claimJob(of))
    assert.deepEqual(await readUsage(), [])
  })
})

describe('a request with an unknown outcome', () => {
  test('counts as one of unknown cost, next to the successful one', async () => {
    await clearUsage()
    const of = await addTranscription()
    const first = await claimJob(of)
    await beginCall(of)
    await endAttempts(db, [{ id: of.jobId, attempt: first, outcome: 'release' }])
    const second = await claimJob(of)
    await beginCall(of)
    await reportUsage(of.jobId, second)
    await finishJob(of, second)
    assert.deepEqual(await readUsage(), [REPORTED_USAGE, UNKNOWN_USAGE])
  })

  test('also counts if the transcription was deleted meanwhile', async () => {
    await clearUsage()
    const of = await addTranscription()
    const attempt = await claimJob(of)
    await beginCall(of)
    assert.equal((await db.maybeOne(cancelTranscription(of.id, owner, false)))?.job_id, of.jobId)
    assert.equal((await db.maybeOne(deleteTranscription(of.id, owner, false)))?.id, of.id)
    await endAttempts(db, [{ id: of.jobId, attempt, outcome: 'cancelled' }])
    assert.equal(await readShown(of), null)
    assert.deepEqual(await readUsage(), [UNKNOWN_USAGE])
    assert.equal(await beginCall(of), null)
  })
})

test('a retry finishes a failed transcription, and counts only its own requests', async () => {
  await clearUsage()
  const of = await addTranscription()
  const attempt = await claimJob(of)
  await beginCall(of)
  await reportUsage(of.jobId, attempt, { success: false, cost: '0' })
  await loseLease(of, attempt)
  const again = { ...of, jobId: await addJob(of.id, of.documentId, owner) }
  const next = await claimJob(again)
  await beginCall(again)
  assert.equal((await readShown(of)).status, 'pending')
  await reportUsage(again.jobId, next)
  await finishJob(again, next)
  const { status, job_id, text, error } = await readShown(of)
  assert.deepEqual([status, job_id, text, error], ['done', again.jobId, 'Hallo', null])
  assert.equal((await readUsage()).length, 2)
  // A late call by the first job changes nothing.
  assert.equal(await beginCall(of), null)
})

test('a restart voids only the text shown since the last one', async () => {
  const of = await addTranscription()
  const attempt = await claimJob(of)
  const emit = (n: number, kind: string) =>
    db.any(storeProgress([{ id: of.jobId, attempt, n, kind, data: { content: 'x' } }]))
  await emit(1, 'chunk')
  assert.equal((await beginCall(of))!.shown, true)
  await emit(2, 'restart')
  assert.equal((await beginCall(of))!.shown, false)
})

test('other accounts can neither read, stop nor delete it', async () => {
  const of = await addTranscription()
  const other = owner + 1
  for (const whose of [other, null]) {
    assert.deepEqual(await query(readTranscription.text, [of.id, whose, false]), [])
    assert.equal(await db.maybeOne(cancelTranscription(of.id, whose, false)), null)
    assert.equal(await db.maybeOne(deleteTranscription(of.id, whose, false)), null)
  }
  assert.equal((await readShown(of)).status, 'pending')
})

describe('is found by an index', () => {
  let client: Client
  let id = ''
  before(async () => {
    await query(
      `insert into account (email, password_hash) select 'n' || n || '@example.com', 'x' from generate_series(1, 50) n`,
    )
    await query(`insert into voice_transcription (id, owner_id, document_id, job_id, provider, model, created_at)
      select gen_random_uuid(), a.id, n, gen_random_uuid(), 'p', 'm', now() - n * interval '1 second'
      from account a, generate_series(1, 100) n`)
    await query(`insert into voice_transcription_piece (transcription_id, ordinal, starts, ends, answer)
      select id, 1, 0, 1, '{}' from voice_transcription`)
    await query('analyze')
    client = await connect({ url, applicationName: 'plans' })
    id = (await query('select id from voice_transcription limit 1'))[0]!.id as string
  })
  after(() => client.end())
  test('a transcription', () => assertReadByIndex(client, readTranscription, [id, owner, false]))
  for (const [who, seesAll] of [
    [owner, false],
    [owner, true],
    [null, true],
  ] as const)
    test(`a page for ${who}, ${seesAll}`, () =>
      assertReadByIndex(client, readTranscriptions, [who, seesAll, null, 0, 50]))
  for (const [what, make] of [
    ['beginning one', () => beginTranscription(id, uuidv7())],
    ['reading its pieces', () => listTranscriptionPieces(id)],
    ['cancelling one', () => cancelTranscription(id, owner, false)],
    ['deleting one', () => deleteTranscription(id, owner, false)],
  ] as const)
    test(what, () => assertWriteByIndex(client, make, 'voice_transcription'))
})
