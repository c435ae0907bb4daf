import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createChance } from '../chance.ts'
import { createTestDatabase } from '../database.ts'
import { SEED } from '../runs.ts'

/**
 * Documents have derived columns and tables, so that queries need not scan all documents. The derived data stays
 * correct after any writes.
 */

const { query } = await createTestDatabase()
await query(
  `insert into account (email, password_hash, role) select 'a' || n || '@example.com', 'x', 'user' from generate_series(1, 2) n`,
)

const STORED_TAG_COUNTS = `select owner_id, label, sum(documents)::int as documents, sum(superseded)::int as superseded from document_tag_count
  group by owner_id, label having sum(documents) <> 0 order by 1, 2`
const EXPECTED_TAG_COUNTS = `select coalesce(owner_id, 0) as owner_id, label, count(*)::int as documents,
    count(superseded_by_id)::int as superseded from document, unnest(tags) label
  where deleted_at is null group by 1, 2 order by 1, 2`
const STORED_TAGS = `select document_id::int as id, label, owner_id, kind, day::text, title, superseded from document_tag order by 1, 2`
const EXPECTED_TAGS = `select id::int, label, coalesce(owner_id, 0) as owner_id, kind, day::text, lower(title) as title,
    superseded_by_id is not null as superseded from document, unnest(tags) label where deleted_at is null order by 1, 2`
const EXPECTED_SUCCESSORS = `select d.id, s.id::int as by from document d
  left join document s on s.supersedes_id = d.id and s.deleted_at is null order by d.id`

const WRITE_KINDS = [
  'add',
  'add',
  'tag',
  'change',
  'delete',
  'restore',
  'supersede',
  'supersede',
  'remove',
] as const

/**
 * Error codes of writes that were rolled back. Such a write made a cycle or a second successor, referenced a deleted
 * document, or deadlocked.
 */
const EXPECTED_ERRORS = ['23514', '23505', '23503', '40P01']

test('derived tag counts, tag rows and successors are correct after any writes', async () => {
  const chance = createChance(SEED)
  const pickTags = (): string[] => ['a', 'b', 'c'].filter(() => chance.isHit(0.4))
  const pickOwner = (): number | null => chance.pick([1, 2, null])
  const pickId = (): number => chance.between(1, 40)
  const write = (): Promise<unknown> => {
    const kind = chance.pick(WRITE_KINDS)
    if (kind === 'add')
      return query(
        `insert into document (owner_id, title, media_type, byte_size, sha256, tags)
         select $1::int, 'T', 'text/plain', 1, sha256(gen_random_uuid()::text::bytea), $2::text[] from generate_series(1, $3)`,
        [pickOwner(), pickTags(), chance.between(1, 4)],
      )
    if (kind === 'tag') return query('update document set tags = $2 where id = $1', [pickId(), pickTags()])
    if (kind === 'change')
      return query(`update document set title = $2, kind = $3, document_date = $4 where id = $1`, [
        pickId(),
        chance.pick(['Ä', 'b', 'C']),
        chance.pick(['x', 'y']),
        chance.pick([null, '2026-01-31']),
      ])
    if (kind === 'delete')
      return query('update document set deleted_at = now(), expires_at = now() where id = $1', [pickId()])
    if (kind === 'restore')
      return query('update document set deleted_at = null, expires_at = null where id = $1', [pickId()])
    if (kind === 'remove')
      return query(
        `delete from document d where id = $1 and supersedes_id is null
         and not exists (select from document s where s.supersedes_id = d.id)`,
        [pickId()],
      )
    return query(
      `update document d set supersedes_id = (select id from document older
         where owner_id is not distinct from d.owner_id and deleted_at is null and id <> d.id
           and $2::bigint is not null order by abs(id - $2) limit 1)
       where id = $1`,
      [pickId(), chance.isHit(0.3) ? null : pickId()],
    )
  }
  const attempt = (): Promise<unknown> =>
    write().catch((error) => {
      if (!EXPECTED_ERRORS.includes(error.code)) throw error
    })
  await query(`insert into document (owner_id, title, media_type, byte_size, sha256)
    select 1, 'T', 'text/plain', 1, sha256(n::text::bytea) from generate_series(1, 20) n`)
  // Ensures one superseded document; random writes alone might create none.
  await query('update document set supersedes_id = 1 where id = 2')
  let maxSuperseded = 0
  for (let step = 0; step < 60; step++) {
    if (chance.isHit(0.1))
      await query('update document set tags = $2 where owner_id = $1', [pickOwner(), pickTags()])
    // Neither of two parallel writes may lose the counts of the other.
    else await Promise.all([attempt(), attempt()])
    assert.deepEqual(await query(STORED_TAG_COUNTS), await query(EXPECTED_TAG_COUNTS))
    assert.deepEqual(await query(STORED_TAGS), await query(EXPECTED_TAGS))
    const documents = await query('select id, superseded_by_id::int as by from document order by id')
    assert.deepEqual(documents, await query(EXPECTED_SUCCESSORS))
    maxSuperseded = Math.max(maxSuperseded, documents.filter(({ by }) => by !== null).length)
  }
  // Compares the maximum over all steps, because the last step may have no superseded documents left.
  assert.ok(maxSuperseded > 0, `at most ${maxSuperseded} superseded at once`)
})
