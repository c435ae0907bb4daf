import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { type Client, connect } from '../../sql/connections/driver.ts'
import {
  addPreviewChunk,
  beginPreview,
  completePiece,
  completePreview,
  deleteExcessPreviews,
  findPreviewChunk,
  findRequestedPreview,
} from '../../sql/voice/previews.ts'
import {
  beginSpeechCall,
  cancelSpeech,
  deleteSpeech,
  findSpeech,
  findSpeechByDigest,
  storeSpeech,
} from '../../sql/voice/speeches.ts'
import { createTestDatabase } from '../database.ts'
import { assertWriteByIndex } from './plans-help.ts'

/** Speeches have an owner and a job, and keep their complete pieces. */

const { db, query, url } = await createTestDatabase()
const [account] = await query(
  `insert into account (email, password_hash) values ('a@example.com', 'x') returning id`,
)
const owner = account!.id as number

async function addJob(): Promise<string> {
  const [job] = await query(
    `insert into job (id, name, queue, mailbox, payload, status, max_tries)
     values (gen_random_uuid(), 'voice.speech', 'voice', 'm', '{}', 'available', 1) returning id`,
  )
  return job!.id as string
}

async function addSpeech(ownerId: number | null = owner) {
  const [digest, jobId] = [randomBytes(32), await addJob()]
  const input = { provider: 'openai', model: 'm', voice: 'v', speed: 1, text: 'Hello', language: 'en' }
  await db.run(storeSpeech({ ...input, digest, ownerId, jobId }))
  return { digest, jobId, input }
}

test('a new generation begins with the complete pieces of earlier ones', async () => {
  const { digest } = await addSpeech()
  const first = await db.one(beginPreview(digest))
  assert.deepEqual([first.spoken, first.ordinal, first.start], [0, 0, 0])
  const add = (generation: string, ordinal: number, piece: number, start: number, text: string) =>
    db.run(addPreviewChunk({ digest, generation, ordinal, piece, start, bytes: Buffer.from(text) }))
  await add(first.generation, 0, 0, 0, 'abc')
  await add(first.generation, 1, 0, 3, 'de')
  assert.equal(await db.run(completePiece(digest, first.generation, 1)), 1)
  await add(first.generation, 2, 1, 5, 'fg')
  const second = await db.one(beginPreview(digest))
  assert.notEqual(second.generation, first.generation)
  assert.deepEqual([second.spoken, second.ordinal, second.start], [1, 2, 5])
  const read = async (generation: string, position: number) => {
    const chunk = await db.maybeOne(findPreviewChunk(digest, generation, position))
    return chunk && Buffer.from(chunk.bytes).toString()
  }
  assert.deepEqual([await read(second.generation, 4), await read(second.generation, 5)], ['de', null])
  assert.equal(await read(first.generation, 0), null)
  // An earlier attempt changes nothing more.
  assert.equal(await db.run(completePiece(digest, first.generation, 2)), 0)
})

test('is found by its latest job, by its owner and by admins', async () => {
  const { digest, jobId, input } = await addSpeech()
  for (const [who, seesAll, isFound] of [
    [owner, false, true],
    [null, false, false],
    [owner + 1, false, false],
    [null, true, true],
  ] as const)
    assert.equal((await db.maybeOne(findSpeech(jobId, who, seesAll))) !== null, isFound)
  const later = await addJob()
  await db.run(storeSpeech({ ...input, digest, ownerId: owner, jobId: later }))
  assert.equal(await db.maybeOne(findSpeech(jobId, owner, false)), null)
  const stored = await db.one(findSpeech(later, owner, false))
  assert.deepEqual([stored.job_id, stored.generation, stored.byte_size], [later, null, null])
  assert.deepEqual(await db.one(findSpeechByDigest(digest)), stored)
  const requested = await db.one(findRequestedPreview(digest))
  assert.deepEqual([requested.text, requested.language], ['Hello', 'en'])
})

test('is gone with its job while it is incomplete', async () => {
  const { digest, jobId } = await addSpeech()
  await query('delete from job where id = $1', [jobId])
  assert.equal(await db.maybeOne(findSpeech(jobId, owner, false)), null)
  await query('update voice_preview set byte_size = 1, generation = gen_random_uuid() where digest = $1', [
    digest,
  ])
  assert.equal((await db.one(findSpeech(jobId, owner, false))).byte_size, 1)
})

test('counts the requests of its latest job', async () => {
  const { digest, jobId } = await addSpeech()
  const begin = async (id: string) => (await db.maybeOne(beginSpeechCall(digest, id)))?.calls
  assert.deepEqual([await begin(jobId), await begin(jobId)], [1, 2])
  const retried = await addJob()
  assert.equal(await begin(retried), 1)
  assert.ok(await db.maybeOne(findSpeech(retried, owner, false)))
  assert.equal((await db.maybeOne(deleteSpeech(retried, owner + 1, false))) !== null, false)
  assert.equal((await db.maybeOne(deleteSpeech(retried, owner, false))) !== null, true)
  assert.equal(await begin(retried), undefined)
})

test('counts no requests of an earlier job, only those of the stored one', async () => {
  const { digest, jobId, input } = await addSpeech()
  const store = (id: string) => db.run(storeSpeech({ ...input, digest, ownerId: owner, jobId: id }))
  const countCalls = async () =>
    (await query('select calls from voice_preview where digest = $1', [digest]))[0]!.calls
  await db.one(beginSpeechCall(digest, jobId))
  await store(jobId)
  assert.equal(await countCalls(), 1)
  await store(randomUUID())
  assert.equal(await countCalls(), 0)
})

test('records its use once a day, and is not among the excess previews', async () => {
  const { digest, jobId } = await addSpeech()
  for (const find of [() => findSpeech(jobId, owner, false), () => findSpeechByDigest(digest)]) {
    await query(`update voice_preview set used_at = now() - interval '2 days' where digest = $1`, [digest])
    await db.one(find())
    const [row] = await query(
      `select used_at > now() - interval '1 minute' as noted from voice_preview where digest = $1`,
      [digest],
    )
    assert.equal(row!.noted, true)
  }
  assert.equal((await db.one(deleteExcessPreviews(0, 100))).count, 0)
})

describe('is found by an index', () => {
  let client: Client
  before(async () => {
    await query(`insert into voice_preview (digest, owner_id, job_id, provider, model, voice, speed, text)
      select sha256(n::text::bytea), ${owner}, gen_random_uuid(), 'p', 'm', 'v', 1, 't' from generate_series(1, 2000) n`)
    await query(`insert into voice_preview_chunk (digest, generation, ordinal, start, bytes)
      select digest, gen_random_uuid(), 0, 0, 'x' from voice_preview`)
    await query('analyze')
    client = await connect({ url, applicationName: 'plans' })
  })
  after(() => client.end())
  test('for each statement', async () => {
    const { digest, jobId, input } = await addSpeech()
    for (const make of [
      () => findSpeech(jobId, owner, false),
      () => findSpeechByDigest(digest),
      () => beginSpeechCall(digest, jobId),
      () => completePiece(digest, randomUUID(), 1),
      () => completePreview(digest, randomUUID(), 1),
      () => storeSpeech({ ...input, digest, ownerId: owner, jobId }),
      () => cancelSpeech(jobId, owner, false),
      () => deleteSpeech(jobId, owner, false),
    ])
      await assertWriteByIndex(client, make, 'voice_preview')
  })
})
