import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { BrowserContext, Page } from 'playwright-core'
import * as crash from '../flow/crash.ts'
import { until } from '../until.ts'
import { findChromium, SKIP_REASON } from './chromium.ts'
import { signIn, startWatchedService } from './watched-service.ts'

/** Tests the live updates that all tabs of a browser share. */

/** Subscribes to a topic in a page and keeps the frames and states in `window.seen`. */
const subscribe = (topic: string): string => `import('/pages/parts/streams.js').then(({ subscribe }) => {
  const seen = window.seen ??= { states: [], frames: [] }
  const keep = (event) => (data) => seen.frames.push({ event, ...data })
  window.stop = subscribe(${JSON.stringify(topic)}, { status: keep('status'), queues: keep('queues') }, (state) => seen.states.push(state))
})`

interface Seen {
  readonly states: readonly (string | number)[]
  readonly frames: readonly { event: string; job_id?: string; status?: string }[]
}

const readSeen = (page: Page): Promise<Seen> => page.evaluate('window.seen ?? { states: [], frames: [] }')

const setHidden = (page: Page, hidden: boolean): Promise<unknown> =>
  page.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${hidden} })
    document.dispatchEvent(new Event('visibilitychange'))`)

const chromium = findChromium()

describe('live updates', { skip: chromium === null && SKIP_REASON, concurrency: false }, async () => {
  if (chromium === null) return
  const { client, open, port } = await startWatchedService(chromium)
  const base = `http://127.0.0.1:${port}`

  /** Opens a tab and counts the streams of its context that are open. */
  async function openTabs(first: Page, count: number): Promise<{ tabs: Page[]; streams: Set<unknown> }> {
    const context: BrowserContext = first.context()
    const streams = new Set<unknown>()
    context.on('request', (request) => /\/events/.test(request.url()) && streams.add(request))
    context.on('requestfinished', (request) => streams.delete(request))
    context.on('requestfailed', (request) => streams.delete(request))
    const tabs = [first]
    while (tabs.length < count) {
      const tab = await context.newPage()
      await tab.goto(`${base}/account/keys`)
      await tab.getByRole('heading', { name: 'API keys', level: 1 }).waitFor()
      tabs.push(tab)
    }
    return { tabs, streams }
  }

  const waitForStatus = (tab: Page, id: string, status: string): Promise<unknown> =>
    until(`the tab receives ${status}`, async () =>
      (await readSeen(tab)).frames.some((frame) => frame.job_id === id && frame.status === status),
    )

  test('eight tabs share two connections, and another tab takes over from one that closes', async (t) => {
    const page = await open(t, '/account/keys')
    await signIn(page)
    await page.getByRole('heading', { name: 'API keys', level: 1 }).waitFor()
    const { tabs, streams } = await openTabs(page, 8)
    const documents = await Promise.all([1, 2, 3, 4].map((n) => crash.uploadText(client, 40, `of tab ${n}`)))
    const jobs = await Promise.all(documents.map((id) => crash.extract(client, id)))
    // Half of the tabs watch the monitor, the others one job each.
    for (const [i, tab] of tabs.entries())
      await tab.evaluate(subscribe(i < 4 ? 'overview' : `job:${jobs[i - 4]!}`))
    for (const tab of tabs.slice(0, 4))
      await until('the tab has the queues', async () =>
        (await readSeen(tab)).frames.some(({ event }) => event === 'queues'),
      )
    await until('there are two streams', () => streams.size === 2)
    // The first tab leads. Its streams end with it.
    await tabs[0]!.close()
    await until('another tab holds the streams', () => streams.size === 2)
    for (const [i, tab] of tabs.slice(4).entries()) await waitForStatus(tab, jobs[i]!, 'done')
    for (const tab of tabs.slice(1)) assert.equal((await readSeen(tab)).states.at(-1), 'live')
    for (const tab of tabs.slice(1, 7)) await tab.close()
    await t.test('the last tab gets no frames of others', async () => {
      const ids = new Set((await readSeen(tabs[7]!)).frames.map(({ job_id: id }) => id))
      assert.deepEqual([...ids], [jobs[3]])
    })
  })

  test('a hidden tab holds no stream, and continues when it is visible again', async (t) => {
    const page = await open(t, '/account/keys')
    await signIn(page)
    await page.getByRole('heading', { name: 'API keys', level: 1 }).waitFor()
    const { streams } = await openTabs(page, 1)
    const id = await crash.extract(client, await crash.uploadText(client, 60, 'hidden'))
    await page.evaluate(subscribe(`job:${id}`))
    await waitForStatus(page, id, 'running')
    await setHidden(page, true)
    await until('the stream is closed', () => streams.size === 0)
    await until('the job is done', async () => {
      const answer = await client.fetch(`/api/v1/jobs/${id}`)
      return ((await answer.json()) as { status: string }).status === 'done'
    })
    assert.ok(!(await readSeen(page)).frames.some(({ status }) => status === 'done'))
    await setHidden(page, false)
    await waitForStatus(page, id, 'done')
  })

  test('a proxy that holds streams back is noticed, and the page polls', async (t) => {
    const page = await open(t, '/account/keys')
    await signIn(page)
    await page.getByRole('heading', { name: 'API keys', level: 1 }).waitFor()
    await page.route(/\/events/, () => undefined)
    const id = await crash.extract(client, await crash.uploadText(client, 40, 'buffered'))
    await page.evaluate(subscribe(`job:${id}`))
    await waitForStatus(page, id, 'done')
    assert.deepEqual([...new Set((await readSeen(page)).states)], ['polling'])
    // The next page of the tab polls immediately.
    await page.goto(`${base}/account/keys`)
    await page.evaluate(subscribe('overview'))
    await until('the queues were polled', async () =>
      (await readSeen(page)).frames.some(({ event }) => event === 'queues'),
    )
    assert.equal((await readSeen(page)).states[0], 'polling')
  })

  test('a job that is gone is refused, and other jobs of the same stream go on', async (t) => {
    const page = await open(t, '/account/keys')
    await signIn(page)
    await page.getByRole('heading', { name: 'API keys', level: 1 }).waitFor()
    const { tabs } = await openTabs(page, 2)
    const id = await crash.extract(client, await crash.uploadText(client, 60, 'not gone'))
    await tabs[0]!.evaluate(subscribe('job:01a20118-fbcc-738c-80ed-00058e0e401d'))
    await tabs[1]!.evaluate(subscribe(`job:${id}`))
    await until('the missing job is refused', async () => (await readSeen(tabs[0]!)).states.includes(404))
    await waitForStatus(tabs[1]!, id, 'done')
  })
})
