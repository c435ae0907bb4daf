import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { areas } from '../../edge/routes/index.ts'
import { listCalls } from '../perf/growth/calls.ts'
import { EDGE_SETTINGS } from '../perf/growth/edge.ts'
import { seedDatabase } from '../perf/growth/seed.ts'
import { findTargets } from '../perf/growth/targets.ts'
import { type Answered, startEdgeAndDatabase } from './harness.ts'

/** Following `next` must read every declared list completely, each row once, in the order of one large page. */

const { api, url } = await startEdgeAndDatabase({ env: EDGE_SETTINGS })
const tokens: Record<string, string> = {}
for (const name of ['admin', 'big', 'small']) tokens[name] = (await api.register(`${name}@example.com`)).token
await seedDatabase(url, 0.1)

/** Lists without a cursor, each with the reason why it is bounded. */
const BOUNDED_LISTS: Readonly<Record<string, string>> = {
  '/api/v1/documents/:id': 'one document, or its pages as Markdown, in batches',
  '/api/v1/documents/tags': 'the most used first: 1,000 of them',
  '/llm/vendors': 'a catalog has some hundred',
  '/llm/modalities': 'there are four',
  '/llm/prices': 'of one model, one a day at most',
  '/api/v1/jobs/events': 'a stream',
  '/api/v1/batches/:batch_id/events': 'a stream',
  '/api/v1/tasks/results': 'at most as many as the caller names, which are 1,000',
  '/api/v1/blog/export': 'the whole of it, in batches',
  '/api/v1/blog/feed.xml': 'the newest 20 posts',
  '/api/v1/blog/atom.xml': 'the newest 20 posts',
  '/api/v1/blog/feed.json': 'the newest 20 posts',
  '/api/v1/blog/sitemap.xml': 'the newest 50,000 addresses',
}

const fieldsOf = (query: unknown): string[] =>
  Object.keys((query as { shape?: object } | undefined)?.shape ?? {})
const getRoutes = areas.flatMap(({ prefix, routes }) =>
  routes
    .filter(({ method }) => method === 'get')
    .map(({ path, query, reads }) => ({ path: prefix + path, fields: fieldsOf(query), reads })),
)

test('every list has `limit` and `cursor`, or is bounded', () => {
  const without = getRoutes.filter(
    ({ reads, fields }) =>
      (reads === 'list' || reads === 'search') && !(fields.includes('limit') && fields.includes('cursor')),
  )
  assert.deepEqual(without.map(({ path }) => path).sort(), Object.keys(BOUNDED_LISTS).sort())
})

const lists = getRoutes.filter(({ fields }) => fields.includes('cursor'))
const calls = listCalls(await findTargets(url)).flatMap((call) => {
  const list = lists.find(({ path }) => call.name.startsWith(`${path} `))
  return list === undefined ? [] : [{ ...call, list }]
})

const findItems = ({ json }: Answered): unknown[] => {
  if (Array.isArray(json)) return json
  const [items, ...others] = Object.values(json).filter((value) => Array.isArray(value))
  assert.equal(others.length, 0)
  return items as unknown[]
}

function findNext({ json, headers }: Answered, path: string, sized: URLSearchParams): string | null {
  if (Array.isArray(json)) return /^<(.+)>; rel="next"$/.exec(String(headers.link ?? ''))?.[1] ?? null
  return json.next === null ? null : `${path}?${sized}&cursor=${json.next}`
}

// The largest page size that every list accepts.
const MAX_PAGE_SIZE = 100

describe('following `next` reads each row once', () => {
  for (const { name, who, path: given } of calls)
    test(name, async () => {
      const [path, search] = given.split('?') as [string, string | undefined]
      const token = tokens[who]
      const get = async (to: string): Promise<Answered> => {
        const answer = await api.get(to, token === undefined ? {} : { token })
        assert.equal(answer.status, 200, answer.text)
        return answer
      }
      const sized = (size: number): URLSearchParams => {
        const query = new URLSearchParams(search)
        query.delete('page')
        query.delete('page_size')
        query.set('limit', String(size))
        return query
      }
      const whole = findItems(await get(`${path}?${sized(MAX_PAGE_SIZE)}`))
      const size = sized(Math.max(1, Math.ceil(whole.length / 3)))
      const pages: unknown[][] = []
      let next: string | null = `${path}?${size}`
      do {
        const answer: Answered = await get(next)
        pages.push(findItems(answer))
        next = findNext(answer, path, size)
      } while (next !== null && pages.flat().length < whole.length)
      // A page of messages is oldest first, but the newest page comes first.
      const isReversed = path.includes('/ai/conversations/')
      const read = (isReversed ? pages.toReversed() : pages).flat()
      if (whole.length < MAX_PAGE_SIZE) {
        assert.deepEqual(read, whole)
        assert.equal(next, null, 'there is no page after the last one')
      } else assert.deepEqual(isReversed ? read.slice(-MAX_PAGE_SIZE) : read.slice(0, MAX_PAGE_SIZE), whole)
    })
})
