import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import {
  buildArrayText,
  buildListText,
  type List,
  MAX_COUNTED_ROWS,
  type PageValues,
} from '../../sql/reads/lists.ts'
import { createReader, type ReadStatement } from '../../sql/reads/reader.ts'
import { sharedDatabase } from './shared-database.ts'

const { query, url } = await sharedDatabase()
const reader = createReader({ url, applicationName: 'lists' })
after(() => reader.close())

await query('create table thing (id integer primary key, at timestamptz not null, kind text)')
await query(`insert into thing select n, timestamptz '2026-01-01' + n / 3 * interval '1.000001 s',
  case n % 2 when 0 then 'even' end from generate_series(1, 10) n`)

const THINGS: List = {
  table: 'thing',
  row: 't',
  parameters: 1,
  where: '$1::text is null or t.kind = $1',
  order: { 't.at': 'timestamptz', 't.id': 'bigint' },
  direction: 'desc',
  item: 't.id',
}

type ThingsStatement = ReadStatement<[kind: string | null, ...page: PageValues]>

const lists: List[] = []

/** Returns the same name for the same list, because connections cache prepared statements by name. */
function nameOf(list: List): string {
  if (!lists.includes(list)) lists.push(list)
  return `things ${lists.indexOf(list)}`
}

interface Page {
  readonly things: readonly number[]
  readonly total: number
  readonly total_is_exact: boolean
  readonly page: number
  readonly page_size: number
  readonly next: string | null
}

const decodeCursor = (cursor: string | null): string | null =>
  cursor === null ? null : Buffer.from(cursor, 'base64url').toString()

async function readPage(list: List, kind: string | null, after: string | null, offset: number, size: number) {
  const statement: ThingsStatement = { name: nameOf(list), text: buildListText('things', list) }
  const text = await reader.text(statement, [kind, decodeCursor(after), offset, size])
  return JSON.parse(text!) as Page
}

/** Reads all pages of a list by their `next` cursors. */
async function followPages(list: List, kind: string | null, size: number): Promise<readonly number[][]> {
  const pages: number[][] = []
  let next: string | null = null
  do {
    const page: Page = await readPage(list, kind, next, 0, size)
    pages.push([...page.things])
    next = page.next
  } while (next !== null)
  return pages
}

test('pages are numbered, and the last one has no next', async () => {
  const first = await readPage(THINGS, null, null, 0, 4)
  assert.deepEqual(
    { ...first, next: typeof first.next },
    { things: [10, 9, 8, 7], total: 10, total_is_exact: true, page: 1, page_size: 4, next: 'string' },
  )
  const last = await readPage(THINGS, null, null, 8, 4)
  assert.deepEqual([last.things, last.page, last.next], [[2, 1], 3, null])
  const beyond = await readPage(THINGS, null, null, 12, 4)
  assert.deepEqual([beyond.things, beyond.total, beyond.next], [[], 10, null])
})

test('cursors lead through all rows once, in both directions and with every page size', async () => {
  const all = [10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
  const ascending: List = { ...THINGS, direction: 'asc' }
  for (const size of [1, 3, 5, 10, 11]) {
    assert.deepEqual((await followPages(THINGS, null, size)).flat(), all)
    assert.deepEqual((await followPages(ascending, null, size)).flat(), all.toReversed())
  }
  assert.deepEqual(await followPages(THINGS, null, 5), [all.slice(0, 5), all.slice(5)])
  assert.deepEqual(await followPages(THINGS, 'even', 2), [[10, 8], [6, 4], [2]])
})

test('a list without page numbers has the same pages in both orders', async () => {
  const list: List = {
    ...THINGS,
    hasPageNumbers: false,
    where: ["t.kind = 'even' and $1::text is null", 't.kind is null'],
    join: 'join thing same on same.id = t.id',
    item: 'same.id',
  }
  const pages = await followPages(THINGS, null, 4)
  assert.deepEqual(await followPages(list, null, 4), pages)
  assert.deepEqual(
    await followPages({ ...list, isReversed: true }, null, 4),
    pages.map((page) => page.toReversed()),
  )
  assert.deepEqual(
    await followPages({ ...THINGS, isReversed: true }, null, 4),
    pages.map((page) => page.toReversed()),
  )
})

test('pages count from the cursor', async () => {
  const { next } = await readPage(THINGS, null, null, 0, 3)
  const second = await readPage(THINGS, null, next, 3, 3)
  assert.deepEqual([second.things, second.page, second.total], [[4, 3, 2], 2, 10])
})

test('several conditions make one list', async () => {
  const list: List = {
    ...THINGS,
    where: ["t.kind = 'even' and $1::text is null", 't.kind is null and t.id > 4'],
  }
  assert.deepEqual(await followPages(list, null, 3), [
    [10, 9, 8],
    [7, 6, 5],
    [4, 2],
  ])
  assert.deepEqual(await readPage(list, null, null, 3, 3).then(({ things, total }) => [things, total]), [
    [7, 6, 5],
    8,
  ])
})

test('a cursor stays valid while rows are added and deleted', async () => {
  const { next } = await readPage(THINGS, null, null, 0, 3)
  await query("insert into thing values (11, '2026-02-01', null)")
  await query('delete from thing where id in (8, 6)')
  const after = await readPage(THINGS, null, next, 0, 3)
  await query(
    "delete from thing where id = 11; insert into thing select n, timestamptz '2026-01-01' + n / 3 * interval '1.000001 s', 'even' from unnest(array[6, 8]) n",
  )
  assert.deepEqual(after.things, [7, 5, 4])
})

test('an array follows the line of its cursor', async () => {
  const statement: ThingsStatement = { name: 'array', text: buildArrayText(THINGS) }
  const [cursor, items] = (await reader.text(statement, [null, null, 0, 9]))!.split('\n')
  assert.deepEqual(JSON.parse(items!), [10, 9, 8, 7, 6, 5, 4, 3, 2])
  assert.equal(await reader.text(statement, [null, decodeCursor(cursor!), 0, 9]), '\n[1]')
})

test('a total is exact up to the counting limit, and says whether it is', async () => {
  for (const [there, total, exact] of [
    [0, 0, true],
    [MAX_COUNTED_ROWS, MAX_COUNTED_ROWS, true],
    [MAX_COUNTED_ROWS + 1, MAX_COUNTED_ROWS, false],
    [3 * MAX_COUNTED_ROWS, MAX_COUNTED_ROWS, false],
  ] as const) {
    const table = `(select n as id from generate_series(1, ${there}) n)`
    const list: List = { ...THINGS, table, where: '$1::text is null', order: { 't.id': 'bigint' } }
    const page = await readPage(list, null, null, 0, 2)
    assert.deepEqual(
      [page.total, page.total_is_exact, page.things.length],
      [total, exact, Math.min(2, there)],
    )
  }
})
