import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { searchDocuments } from '../../sql/documents/search.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { createTestDatabase } from '../database.ts'

/**
 * A search scans a bounded number of pages, and marks its total as inexact beyond that. It still finds rare words and
 * new documents.
 */

const { url, query } = await createTestDatabase()
const reader = createReader({ url, applicationName: 'search' })
after(() => reader.close())
await query(
  `insert into account (email, password_hash, role) select 'a' || n || '@example.com', 'x', 'user' from generate_series(1, 2) n`,
)

// The first owner has 2,500 documents. Every page has `every`, odd ones `odd`, even ones `even`, and one page both.
await query(`insert into document (owner_id, title, media_type, byte_size, sha256)
  select 1, case n when 1234 then 'Titled' else 'T' end, 'text/plain', 1, sha256(n::text::bytea) from generate_series(1, 2500) n`)
await query(`insert into document_page (document_id, page_number, status, method, text, job_id)
  select id, 1, 'read', 'text_layer', 'every ' || case when id = 77 then 'odd even' when id % 2 = 1 then 'odd' else 'even' end
    || case id when 5 then ' rare' when 2499 then ' rare' else '' end || ' number' || id, gen_random_uuid() from document`)
// The other owner's only document shares a word with the first owner's documents.
await query(
  `insert into document (owner_id, title, media_type, byte_size, sha256) values (2, 'Other', 'text/plain', 1, sha256('x'))`,
)
await query(`insert into document_page (document_id, page_number, status, method, text, job_id)
  select id, 1, 'read', 'text_layer', 'every secret', gen_random_uuid() from document where owner_id = 2`)
await query('analyze')

async function search(text: string, { owner = 1, size = 200 } = {}) {
  const found = await reader.text(
    searchDocuments.rank.desc,
    [owner, null, null, null, null, false, text, false, null, 0, size],
    {
      limitMs: 10_000,
    },
  )
  const { items, total, total_is_exact } = JSON.parse(found!)
  return { ids: items.map(({ id }: { id: number }) => id), total, isExact: total_is_exact }
}

test('a word on most pages ranks some of them, including the newest, with an inexact total', async () => {
  const { ids, total, isExact } = await search('every')
  assert.equal(isExact, false)
  assert.ok(total >= 1000 && total <= 2100, `${total}`)
  assert.deepEqual(ids.slice(0, 3), [2500, 2498, 2497], 'page 2499 is longer')
})

test('a rare word is found on any page, alone or with a frequent word', async () => {
  assert.deepEqual(await search('rare'), { ids: [2499, 5], total: 2, isExact: true })
  assert.deepEqual(await search('every rare odd'), { ids: [2499, 5], total: 2, isExact: true })
  assert.deepEqual((await search('every -odd rare')).ids, [])
  assert.deepEqual(
    (await search('every titled')).ids,
    [1234],
    'the title of a document and the text of its page',
  )
})

test('two frequent words that rarely meet are found where they do', async () => {
  assert.deepEqual((await search('odd even')).ids, [77])
})

test('pages of other owners are neither found nor counted', async () => {
  assert.deepEqual((await search('secret')).ids, [])
  assert.deepEqual(await search('every', { owner: 2 }), { ids: [2501], total: 1, isExact: true })
})

test('partial words match if whole words and prefixes find little', async () => {
  assert.deepEqual((await search('umber1234')).ids, [1234])
  assert.deepEqual((await search('ver')).total > 0, true)
  assert.equal(
    (await search('number123')).total,
    11,
    'a word and ten that begin with it: parts of words count, too',
  )
})
