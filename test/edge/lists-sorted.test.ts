import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { areas } from '../../edge/routes/index.ts'
import { type Answered, startEdgeAndDatabase } from './harness.ts'
import { createLedger } from './ledger.ts'

/**
 * In all searchable lists `from`, `to` and `sort` have the same meaning. Following a cursor in any order must read each
 * row once, even while rows are added and removed.
 */

const { api, query, ...database } = await startEdgeAndDatabase({
  env: { AUTH_LEVEL: 'basic', OPEN_AREAS: 'ai' },
})
const ledger = createLedger({ query, ...database })
const admin = await api.register('admin@example.com')
const ann = await api.register('ann@example.com')

// Three rows share each minute, so that ids break ties.
const timeOf = (n: number): string => new Date(Date.UTC(2026, 0, 1, 0, Math.floor(n / 3))).toISOString()
const ROW_NUMBERS = Array.from({ length: 12 }, (_, n) => n)

/** A list under test, with requests and functions that add and remove a row. */
interface SortedList {
  readonly path: string
  readonly token: string
  readonly items: (answer: Answered) => Record<string, unknown>[]
  readonly sorts: readonly string[]
  /** Sort key for time, which is also the name of its field. */
  readonly time: string
  readonly add: (n: number) => Promise<string | number>
  readonly remove: (id: string | number) => Promise<unknown>
}

const readArray = ({ json }: Answered) => json
const insertRow = async (text: string, values: unknown[]): Promise<string | number> =>
  Object.values((await query(text, values))[0]!)[0] as string | number

const [customer] = await query(
  `insert into payment_customer (user_id, provider_customer_id) values ($1, 'cus_ann') returning id`,
  [ann.id],
)

const LISTS: Readonly<Record<string, SortedList>> = {
  accounts: {
    path: '/api/v1/auth/users?search=person',
    token: admin.token,
    items: readArray,
    sorts: ['created_at', 'email', 'last_login'],
    time: 'created_at',
    add: (n) =>
      insertRow(
        `insert into account (email, password_hash, created_at, last_login) values ($1, 'x', $2, $3) returning id`,
        [`person${(n * 7) % 13}.${n}@example.com`, timeOf(n), n % 3 === 0 ? null : timeOf((n * 5) % 11)],
      ),
    remove: (id) =>
      query(
        `update account set email = null, full_name = null, password_hash = '', is_active = false, deleted_at = now() where id = $1`,
        [id],
      ),
  },
  'audited events': {
    path: '/api/v1/auth/audit?kind=member.added',
    token: admin.token,
    items: ({ json }) => json.events,
    sorts: ['at'],
    time: 'at',
    add: (n) =>
      insertRow(`insert into audit_event (at, kind) values ($1, 'member.added') returning id::int`, [
        timeOf(n),
      ]),
    // Audit events cannot be deleted.
    remove: async () => {},
  },
  sends: {
    path: '/api/v1/comms/sends?channel=sms',
    token: ann.token,
    items: readArray,
    sorts: ['created_at'],
    time: 'created_at',
    add: (n) =>
      insertRow(
        `insert into comms_send (id, channel, owner_id, job_id, recipients, message, created_at)
         values ($1, 'sms', $2, $1, '{x}', '{}', $3) returning id`,
        [randomUUID(), ann.id, timeOf(n)],
      ),
    remove: (id) => query('delete from comms_send where id = $1', [id]),
  },
  transactions: {
    path: '/api/v1/payment/transactions',
    token: ann.token,
    items: ({ json }) => json.transactions,
    sorts: ['created_at', 'amount'],
    time: 'created_at',
    add: (n) =>
      insertRow(
        `insert into payment_transaction (customer_id, facts) values ($1, jsonb_build_object('money',
           jsonb_build_array('', jsonb_build_object('amount', $2::int, 'currency', 'usd')), 'outcome', jsonb_build_array('', $3::text),
           'created', jsonb_build_array('', $4::int), 'payment_intent', jsonb_build_array('', $5::text))) returning id::int`,
        [
          customer!.id,
          100 * ((n * 7) % 5),
          n % 4 === 0 ? 'failed' : 'succeeded',
          Date.parse(timeOf(n)) / 1000,
          `pi_${n}`,
        ],
      ),
    remove: (id) => query('delete from payment_transaction where id = $1', [id]),
  },
  conversations: {
    path: '/api/v1/ai/conversations',
    token: ann.token,
    items: readArray,
    sorts: ['updated_at'],
    time: 'updated_at',
    add: (n) =>
      insertRow(
        `insert into ai_conversation (id, user_id, owner_id, title, provider, model, updated_at)
         values ($1, $2, $3, 't', 'openai', 'm', $4) returning id`,
        [randomUUID(), String(ann.id), ann.id, timeOf(n)],
      ),
    remove: (id) => query('delete from ai_conversation where id = $1', [id]),
  },
  jobs: {
    path: '/api/v1/jobs',
    token: ann.token,
    items: ({ json }) => json.map((job: { job_id: string }) => ({ ...job, id: job.job_id })),
    sorts: ['created_at'],
    time: 'created_at',
    add: async (n) => {
      const id = await (n % 3 === 0 ? ledger.addFinished(ann.id) : ledger.add(ann.id))
      await query('update job set created_at = $2 where id = $1', [id, timeOf(n)])
      return id
    },
    remove: (id) => query('delete from job where id = $1', [id]),
  },
}

/** Follows a list to its end and calls `meanwhile` after each page. */
async function followList(
  { path, token, items }: SortedList,
  search: string,
  limit: number,
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<Record<string, unknown>[]> {
  const first = `${path}${path.includes('?') ? '&' : '?'}${search}&limit=${limit}`
  const found: Record<string, unknown>[] = []
  let next: string | undefined = first
  while (next !== undefined) {
    const answer: Answered = await api.get(next, { token })
    assert.equal(answer.status, 200, answer.text)
    found.push(...items(answer))
    const cursor = Array.isArray(answer.json) ? undefined : answer.json.next
    const link = /^<(.+)>; rel="next"$/.exec(String(answer.headers.link ?? ''))?.[1]
    next = link ?? (cursor && `${first}&cursor=${cursor}`) ?? undefined
    await meanwhile()
  }
  return found
}
const idsOf = (rows: readonly Record<string, unknown>[]): unknown[] => rows.map(({ id }) => id)

for (const [name, list] of Object.entries(LISTS))
  describe(name, async () => {
    const ids: (string | number)[] = []
    for (const n of ROW_NUMBERS) ids.push(await list.add(n))
    // Restrict lists to one day, which excludes other rows, such as the events of the registrations above.
    const DAY = 'from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z'
    const get = (search: string): Promise<Answered> =>
      api.get(`${list.path}${list.path.includes('?') ? '&' : '?'}${search}`, { token: list.token })

    test('`from` is inclusive and `to` exclusive', async () => {
      const of = async (search: string) => new Set(idsOf(await followList(list, search, 5)))
      const spans = [
        'from=2026-01-01T00:01:00Z&to=2026-01-01T00:03:00Z',
        'from=2026-01-01T00:01:00&to=2026-01-01T03:03:00%2B03:00',
      ]
      for (const search of spans) assert.deepEqual(await of(search), new Set(ids.slice(3, 9)), search)
      assert.deepEqual(await of('to=2026-01-01T00:01:00Z'), new Set(ids.slice(0, 3)))
      assert.deepEqual(await of(`${DAY}&from=2026-01-01T00:03:00Z`), new Set(ids.slice(9)))
      assert.deepEqual(await of('from=2026-01-01T00:03:00Z&to=2026-01-01T00:03:00Z'), new Set())
    })

    test("an invalid time, or one out of the database's range, is rejected", async () => {
      for (const field of ['from', 'to'])
        for (const time of [
          '',
          'x',
          '2026-01-01',
          '2026-02-30T00:00:00Z',
          '0000-01-01T00:00:00Z',
          '2026-01-01T00:00:00%2B23:59',
          `2026-01-01T00:00:00.${'1'.repeat(200)}Z`,
        ]) {
          const { status, json } = await get(`${field}=${time}`)
          // The AI area answers 400 where others answer 422.
          assert.equal(status, name === 'conversations' ? 400 : 422, `${field}=${time}`)
          assert.deepEqual(json.errors[0].loc, ['query', field])
        }
    })

    test('without `sort` the default order applies', async () => {
      const plain = await followList(list, DAY, 100)
      assert.equal(plain.length, ROW_NUMBERS.length)
      if (name !== 'jobs') assert.deepEqual(plain, await followList(list, `${DAY}&sort=-${list.time}`, 100))
    })

    for (const sort of list.sorts) {
      const whole = sort === list.time ? DAY : 'page=1'
      test(`${sort} descending is the reverse of ${sort} ascending`, async () => {
        const [up, down] = [
          await followList(list, `${whole}&sort=${sort}`, 100),
          await followList(list, `${whole}&sort=-${sort}`, 100),
        ]
        assert.deepEqual(down, up.toReversed())
        assert.equal(new Set(idsOf(up)).size, ROW_NUMBERS.length)
        const values = up.map((row) => row[sort === 'updated_at' ? 'last_activity' : sort] ?? '')
        assert.deepEqual(values, values.toSorted(compare))
      })

      for (const direction of ['', '-'])
        test(`${direction}${sort} can be followed while rows are added and removed`, async () => {
          const before = idsOf(await followList(list, `${whole}&sort=${direction}${sort}`, 100))
          const [come, gone] = [new Set<unknown>(), new Set<unknown>()]
          let n = 0
          const read = idsOf(
            await followList(list, `${whole}&sort=${direction}${sort}`, 2, async () => {
              if (++n > 3) return
              come.add(await list.add(20 + n * 2))
              const leaving = before[n * 3]!
              gone.add(leaving)
              await list.remove(leaving as string | number)
            }),
          )
          assert.equal(new Set(read).size, read.length, 'no row comes twice')
          const stayed = before.filter((id) => !gone.has(id))
          assert.deepEqual(
            read.filter((id) => stayed.includes(id)),
            stayed,
          )
          for (const id of come) await list.remove(id as string | number)
          if (name === 'audited events') return
          for (const id of gone) ids[ids.indexOf(id as string)] = await list.add(ids.indexOf(id as string))
        })
    }

    test('an unknown order is 422', async () => {
      for (const sort of ['', 'x', '-', '--at', `${list.time}-`, `+${list.time}`, 'id'])
        assert.deepEqual((await get(`sort=${sort}`)).json.errors?.[0].loc, ['query', 'sort'], sort)
    })

    test('a cursor of another order is 422', async () => {
      const nexts = new Map<string, string>()
      for (const sort of [...list.sorts, ...(name === 'jobs' ? [''] : [])]) {
        const answer = await get(sort === '' ? 'limit=1' : `sort=${sort}&limit=1`)
        const link = /[?&]cursor=([^&>]+)/.exec(String(answer.headers.link ?? ''))?.[1]
        nexts.set(sort, link ?? answer.json.next)
      }
      for (const [sort, next] of nexts)
        for (const other of nexts.keys()) {
          const { status, json } = await get(`${other === '' ? '' : `sort=${other}&`}cursor=${next}`)
          assert.equal(status, sort === other ? 200 : 422, `${sort} for ${other}`)
          if (sort !== other) assert.deepEqual(json.errors[0].loc, ['query', 'cursor'])
        }
    })

    test('`from` and `to` require the order by time', async () => {
      for (const sort of list.sorts)
        for (const search of ['from=2026-01-01T00:00:00Z', 'to=2026-01-02T00:00:00Z']) {
          const { status, json } = await get(`sort=-${sort}&${search}`)
          assert.equal(status, sort === list.time ? 200 : 422, sort)
          if (status === 422) assert.deepEqual(json.errors[0].loc, ['query', 'sort'])
        }
    })
  })

const compare = (one: unknown, other: unknown): number =>
  typeof one === 'number'
    ? one - Number(other)
    : String(one) < String(other)
      ? -1
      : String(one) > String(other)
        ? 1
        : 0

test('every list with `from`, `to` or `sort` has all three', () => {
  const fieldsOf = (schema: unknown): string[] =>
    Object.keys((schema as { shape?: object } | undefined)?.shape ?? {})
  const named = areas.flatMap(({ prefix, routes }) =>
    routes
      .filter(({ method, query: schema }) => method === 'get' && fieldsOf(schema).includes('sort'))
      .map((one) => [
        prefix + one.path,
        fieldsOf(one.query).filter((field) => field === 'from' || field === 'to'),
      ]),
  )
  assert.deepEqual(Object.fromEntries(named), {
    ...Object.fromEntries(Object.values(LISTS).map(({ path }) => [path.split('?')[0], ['from', 'to']])),
    '/api/v1/jobs/search': ['from', 'to'],
    '/api/v1/documents': ['from', 'to'],
    '/api/v1/payment/admin/transactions': ['from', 'to'],
  })
})
