import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { connect } from '../../sql/connections/driver.ts'
import {
  addPreviewChunk,
  beginPreview,
  completePreview,
  deleteExcessPreviews,
  findPreview,
  findPreviewChunk,
  findRequestedPreview,
  storePreviewRequest,
} from '../../sql/voice/previews.ts'
import { createTestDatabase } from '../database.ts'
import { assertWriteByIndex } from './plans-help.ts'

/** Stored previews of voices, and the tables' constraints. */

const { db, query, url } = await createTestDatabase()
const speech = { provider: 'openai', model: 'm', voice: 'v', speed: 1.25, text: 't' }

test('a preview exists once it is complete, with the bytes of its last generation', async () => {
  const digest = randomBytes(32)
  assert.equal(await db.maybeOne(findRequestedPreview(digest)), null)
  assert.equal(await db.maybeOne(beginPreview(digest)), null)
  await db.run(storePreviewRequest(digest, speech))
  await db.run(storePreviewRequest(digest, speech))
  assert.deepEqual(await db.maybeOne(findRequestedPreview(digest)), {
    ...speech,
    language: null,
    byte_size: null,
  })
  const first = (await db.one(beginPreview(digest))).generation
  const add = (generation: string, ordinal: number, start: number, text: string) =>
    db.run(addPreviewChunk({ digest, generation, ordinal, start, bytes: Buffer.from(text) }))
  const at = async (generation: string, position: number) => {
    const chunk = await db.maybeOne(findPreviewChunk(digest, generation, position))
    return chunk && [chunk.start, Buffer.from(chunk.bytes).toString()]
  }
  await add(first, 0, 0, 'abc')
  assert.deepEqual(await at(first, 2), [0, 'abc'])
  assert.equal(await at(first, 3), null)
  assert.equal(await db.maybeOne(findPreview(digest)), null)

  const { generation } = await db.one(beginPreview(digest))
  assert.notEqual(generation, first)
  assert.equal(await at(first, 0), null)
  await add(generation, 0, 0, 'xy')
  await add(generation, 1, 2, 'z')
  assert.deepEqual(
    [await at(generation, 1), await at(generation, 2)],
    [
      [0, 'xy'],
      [2, 'z'],
    ],
  )
  assert.equal(await db.run(completePreview(digest, first, 3)), 0)
  assert.equal(await db.run(completePreview(digest, generation, 3)), 1)
  assert.deepEqual(await db.maybeOne(findPreview(digest)), { generation, byte_size: 3 })
})

test('its use is recorded once a day', async () => {
  const digest = randomBytes(32)
  await db.run(storePreviewRequest(digest, speech))
  await db.one(beginPreview(digest))
  await query('update voice_preview set byte_size = 1 where digest = $1', [digest])
  const markUsed = async (ago: string) => {
    await query(`update voice_preview set used_at = now() - $2::interval where digest = $1`, [digest, ago])
    await db.one(findPreview(digest))
    const [row] = await query(
      `select used_at > now() - interval '1 minute' as noted from voice_preview where digest = $1`,
      [digest],
    )
    return row!.noted
  }
  assert.equal(await markUsed('23 hours'), false)
  assert.equal(await markUsed('25 hours'), true)
})

test('the least recently used previews are pruned beyond the limit', async () => {
  await query('delete from voice_preview')
  const digests = Array.from({ length: 5 }, () => randomBytes(32))
  for (const digest of digests) await db.run(storePreviewRequest(digest, speech))
  assert.equal((await db.one(deleteExcessPreviews(3, 100))).count, 2)
  assert.equal((await db.one(deleteExcessPreviews(3, 100))).count, 0)
  const left = await query(`select digest from voice_preview order by used_at`)
  assert.deepEqual(
    left.map(({ digest }) => String(digest)),
    digests.slice(2).map(String),
  )
})

test('a preview and its chunks are found by an index', async () => {
  await query(`insert into voice_preview (digest, provider, model, voice, speed, text, generation)
    select sha256(n::text::bytea), 'p', 'm', 'v', 1, 't', gen_random_uuid() from generate_series(1, 1500) n`)
  await query(`insert into voice_preview_chunk (digest, generation, ordinal, start, bytes)
    select digest, generation, n, n, 'x' from voice_preview, generate_series(0, 1) n where generation is not null`)
  await query('analyze')
  const client = await connect({ url, applicationName: 'plans' })
  after(() => client.end())
  const [row] = await query(
    'select digest, generation from voice_preview where generation is not null limit 1',
  )
  const { digest, generation } = row as { digest: Buffer; generation: string }
  for (const make of [
    () => findPreview(digest),
    () => storePreviewRequest(digest, speech),
    () => findRequestedPreview(digest),
    () => findPreviewChunk(digest, generation, 1),
    () => completePreview(digest, generation, 2),
    () => beginPreview(digest),
    () => deleteExcessPreviews(10_000, 100),
  ])
    await assertWriteByIndex(client, make, 'voice_preview')
})

describe('constraints', () => {
  const insert = (table: string, row: object) => {
    const keys = Object.keys(row)
    return query(
      `insert into ${table} (${keys.join(', ')}) values (${keys.map((_, n) => `$${n + 1}`).join(', ')})`,
      Object.values(row),
    )
  }
  const settings = {
    tts_provider: 'p',
    tts_model: 'm',
    tts_voice: 'v',
    tts_speed: 1,
    stt_provider: 'p',
    stt_model: 'm',
  }
  const preview = { ...speech, digest: randomBytes(32) }
  const chunk = {
    digest: preview.digest,
    generation: randomUUID(),
    ordinal: 0,
    start: 0,
    bytes: Buffer.from('x'),
  }
  const transcription = {
    id: randomUUID(),
    document_id: 1,
    job_id: randomUUID(),
    provider: 'p',
    model: 'm',
  }
  const done = { ...transcription, status: 'done', settled_at: new Date(), text: '' }
  const transcriptionCases = [
    ['owner_id_fkey', { ...transcription, owner_id: 2_000_000_000 }],
    ['status_check', { ...done, status: 'stopped', text: null }],
    ['settled_check', { ...transcription, settled_at: new Date() }],
    ['text_check', { ...done, text: null }],
    ['text_check', { ...transcription, text: '' }],
    ['error_check', { ...done, error_code: 'x' }],
    ['requested_language_check', { ...transcription, requested_language: 'x<y' }],
    ['prompt_check', { ...transcription, prompt: '' }],
    ['prompt_check', { ...transcription, prompt: 'x'.repeat(4001) }],
    ['amounts_check', { ...transcription, calls: -1 }],
    ['amounts_check', { ...done, cost: -1 }],
    ['amounts_check', { ...done, duration_seconds: -1 }],
    ['segments_check', { ...done, segments: '{}' }],
  ] as const
  const piece = { transcription_id: transcription.id, ordinal: 1, starts: 0, ends: 1, answer: '{}' }
  const cases: readonly (readonly [constraint: string, table: string, row: object])[] = [
    ['voice_settings_id_check', 'voice_settings', { ...settings, id: false }],
    ['voice_settings_tts_speed_check', 'voice_settings', { ...settings, tts_speed: 0.2 }],
    ['voice_settings_tts_speed_check', 'voice_settings', { ...settings, tts_speed: 4.1 }],
    ['voice_settings_stt_language_check', 'voice_settings', { ...settings, stt_language: 'DE' }],
    ['voice_settings_updated_by_fkey', 'voice_settings', { ...settings, updated_by: 2_000_000_000 }],
    ['voice_preview_digest_check', 'voice_preview', { ...preview, digest: randomBytes(31) }],
    ['voice_preview_owner_id_check', 'voice_preview', { ...preview, owner_id: 1 }],
    [
      'voice_preview_owner_id_fkey',
      'voice_preview',
      { ...preview, job_id: randomUUID(), owner_id: 2_000_000_000 },
    ],
    ['voice_preview_counts_check', 'voice_preview', { ...preview, spoken: -1 }],
    ['voice_preview_counts_check', 'voice_preview', { ...preview, calls: -1 }],
    ['voice_preview_byte_size_check', 'voice_preview', { ...preview, byte_size: 1 }],
    [
      'voice_preview_byte_size_check',
      'voice_preview',
      { ...preview, byte_size: 0, generation: randomUUID() },
    ],
    ['voice_preview_chunk_digest_fkey', 'voice_preview_chunk', { ...chunk, digest: randomBytes(32) }],
    ['voice_transcription_piece_transcription_id_fkey', 'voice_transcription_piece', piece],
    ['voice_transcription_piece_times_check', 'voice_transcription_piece', { ...piece, ends: 0 }],
    ['voice_transcription_piece_times_check', 'voice_transcription_piece', { ...piece, starts: -1 }],
    ...transcriptionCases.map(
      ([name, row]) => [`voice_transcription_${name}`, 'voice_transcription', row] as const,
    ),
  ]
  for (const [constraint, table, row] of cases)
    test(`${constraint}: ${Object.keys(row).at(-1)}`, () =>
      assert.rejects(insert(table, row), { constraint }))

  test('accept valid rows, and each rejects an invalid one', async () => {
    await insert('voice_settings', settings)
    await assert.rejects(insert('voice_settings', settings), { constraint: 'voice_settings_pkey' })
    await insert('voice_preview', preview)
    await assert.rejects(insert('voice_preview', preview), { constraint: 'voice_preview_pkey' })
    const spoken = { ...speech, job_id: randomUUID() }
    await insert('voice_preview', { ...spoken, digest: randomBytes(32) })
    await assert.rejects(insert('voice_preview', { ...spoken, digest: randomBytes(32) }), {
      constraint: 'voice_preview_job_id_key',
    })
    await insert('voice_preview_chunk', chunk)
    await assert.rejects(insert('voice_preview_chunk', chunk), { constraint: 'voice_preview_chunk_pkey' })
    await insert('voice_transcription', done)
    await assert.rejects(insert('voice_transcription', done), { constraint: 'voice_transcription_pkey' })
    await insert('voice_transcription_piece', piece)
    await assert.rejects(insert('voice_transcription_piece', piece), {
      constraint: 'voice_transcription_piece_pkey',
    })
    const named = await query(
      `select conname from pg_constraint where conrelid::regclass::text like 'voice\\_%' and contype <> 'n'`,
    )
    const keys = [
      'voice_settings_pkey',
      'voice_preview_pkey',
      'voice_preview_job_id_key',
      'voice_preview_chunk_pkey',
      'voice_transcription_pkey',
      'voice_transcription_piece_pkey',
    ]
    const tried = new Set([...cases.map(([name]) => name), ...keys])
    assert.deepEqual(
      named.map(({ conname }) => String(conname)).filter((name) => !tried.has(name)),
      [],
    )
  })
})
