import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { searchConversations } from '../../sql/ai/search.ts'
import { createReader } from '../../sql/reads/reader.ts'
import { createTestDatabase, vacuumAnalyze } from '../database.ts'

/** A search of conversations reads a bounded number of texts. It still finds rare words and the newest conversations. */

const { url, query } = await createTestDatabase()
const reader = createReader({ url, applicationName: 'search' })
after(() => reader.close())
await query(
  `insert into account (email, password_hash) select 'a' || n || '@example.com', 'x' from generate_series(1, 2) n`,
)
// The first owner has 2,000 conversations with the word `every` in both of their messages.
await query(
  `insert into ai_conversation (id, user_id, owner_id, title, provider, model, updated_at)
   select md5('c' || n)::uuid, '1', 1, case n when 77 then 'Titled' else 'T' end, 'p', 'm', now() - (2001 - n) * interval '1 hour'
   from generate_series(1, 2000) n`,
)
await query(
  `insert into ai_message (id, conversation_id, role, status, content, job_id, settled_at)
   select md5('m' || n || ' ' || k)::uuid, md5('c' || n)::uuid, case k when 1 then 'user' else 'assistant' end, 'complete',
     'every ' || case when n % 2 = 1 then 'odd' else 'even' end || case when n in (5, 1999) and k = 2 then ' rare' else '' end,
     case k when 2 then gen_random_uuid() end, now()
   from generate_series(1, 2000) n, generate_series(1, 2) k`,
)
await query(
  `insert into ai_conversation (id, user_id, owner_id, title, provider, model) values (md5('other')::uuid, '2', 2, 'every', 'p', 'm')`,
)
// A title is stored with the first messages.
await query(
  `insert into ai_message (id, conversation_id, role, status, content, settled_at)
   values (gen_random_uuid(), md5('other')::uuid, 'user', 'complete', 'Hello', now())`,
)
await vacuumAnalyze(query)
const names = new Map(
  (await query(`select md5('c' || n)::uuid as id, n from generate_series(1, 2000) n`)).map(({ id, n }) => [
    id,
    n,
  ]),
)

async function search(words: string, { direction = 'desc' as 'asc' | 'desc', size = 3, owner = 1 } = {}) {
  const values = ['', owner, false, null, null, words, null, 0, size] as const
  const text = await reader.text(searchConversations.updated_at[direction], values, { limitMs: 20_000 })
  const [, items] = text!.split('\n') as [string, string]
  return (JSON.parse(items) as { id: string; match: { snippet: string } }[]).map(({ id, match }) => {
    assert.ok(match.snippet.length > 0)
    return names.get(id) ?? id
  })
}

test('a frequent word finds the newest conversations', async () => {
  assert.deepEqual(await search('every'), [2000, 1999, 1998])
  assert.deepEqual(await search('every odd'), [1999, 1997, 1995])
  assert.deepEqual(await search('every -odd'), [2000, 1998, 1996])
})

test('a rare word is found in any conversation, alone or with a frequent one', async () => {
  assert.deepEqual(await search('rare'), [1999, 5])
  assert.deepEqual(await search('rare every', { direction: 'asc' }), [5, 1999])
  assert.deepEqual(await search('every titled'), [77], 'one word in the title, the other one in a message')
  assert.deepEqual(await search('rare even'), [])
})

test('a search reads the words of its own owner only', async () => {
  assert.equal((await search('every', { owner: 2 })).length, 1)
  assert.deepEqual(await search('rare', { owner: 2 }), [])
})

test('a word of a message beyond the first 16,000 characters is found, and not beyond eight parts', async () => {
  await query(
    `insert into ai_message (id, conversation_id, role, status, content, settled_at)
     values (gen_random_uuid(), md5('other')::uuid, 'user', 'complete', repeat('x ', 30000) || 'far ' || repeat('y ', 50000) || 'beyond', now())`,
  )
  assert.equal((await search('far', { owner: 2 })).length, 1)
  assert.equal((await search('beyond', { owner: 2 })).length, 0)
})

test('words of a deleted message are gone', async () => {
  await query(`delete from ai_message where content like '%far%'`)
  assert.equal((await search('far', { owner: 2 })).length, 0)
})
