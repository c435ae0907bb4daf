import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import type { Locator, Page, Route } from 'playwright-core'
import { startModelServer } from '../standins/models.ts'
import { until } from '../until.ts'
import { findViolations } from './axe.ts'
import { findChromium, SKIP_REASON } from './chromium.ts'
import {
  findSection,
  press,
  READER_EMAIL,
  signIn,
  startWatchedService,
  waitForFocus,
} from './watched-service.ts'

/** Chats through the pages: asks, reads, changes and finds questions, as a person without a terminal does. */

const ANSWER = `## Mills

Three were **rebuilt**. [Survey](https://example.com/a), [script](javascript:alert(1)), ![Wheel](https://example.com/w.png)

| Mill | Year |
| --- | --- |
| Northern | 1871 |

\`\`\`js
const head = 3.2
\`\`\`

<b>plain</b>`

/** Answers the request of a stream with its first piece, as a connection does that breaks then. */
async function cutStream(route: Route): Promise<void> {
  const request = route.request()
  const { cookie, origin, 'idempotency-key': key } = await request.allHeaders()
  const headers = {
    'content-type': 'application/json',
    cookie: cookie!,
    origin: origin!,
    'idempotency-key': key!,
  }
  const response = await fetch(request.url(), { method: 'POST', headers, body: request.postData() })
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader()
  let body = ''
  while (!body.includes('event: chunk')) body += (await reader.read()).value ?? ''
  await reader.cancel()
  await route.fulfill({ headers: { 'content-type': 'text/event-stream' }, body })
}

const chromium = findChromium()

describe('chats in a browser', { skip: chromium === null && SKIP_REASON, concurrency: false }, async () => {
  if (chromium === null) return
  const models = await startModelServer()
  after(() => models.stop())
  const service = await startWatchedService(chromium, {
    OPENAI_API_KEY: 'k',
    OPENAI_BASE_URL: models.url,
    AI_BUDGET_MONTH_COST: '5',
  })
  const { open, query } = service
  await query(
    `insert into ai_agent (slug, name, model_id, system_prompt) values ('miller', 'Miller', 'gpt-4o', 'You mill')`,
  )

  const box = (page: Page): Locator => page.getByRole('textbox', { name: 'Question' })
  const answers = (page: Page): Locator => page.locator('.message.assistant:not(.writing)')
  const lastAsked = (): string => JSON.stringify(models.asked.at(-1))
  const ask = async (page: Page, text: string): Promise<void> => {
    await box(page).fill(text)
    await page.keyboard.press('Enter')
  }

  test('a person asks, asks again, edits, compares versions and branches', async (t) => {
    models.script = () => ({ pieces: ANSWER.match(/[\s\S]{1,9}/g)! })
    const page = await open(t, '/chat')
    await signIn(page, READER_EMAIL)
    await page.getByText('No conversations yet.').waitFor()
    await page.getByText('$5.00 of $5.00 left this month').waitFor()
    await ask(page, 'Which mills were rebuilt?')
    await page.getByRole('heading', { name: 'Mills', exact: true }).waitFor()
    await page.getByText('12 tokens in, 5 out').waitFor()
    await waitForFocus('the question', box(page))
    const answer = answers(page).first()
    assert.equal(
      await answer.getByRole('link', { name: 'Survey' }).getAttribute('href'),
      'https://example.com/a',
    )
    assert.equal(await answer.getByRole('link', { name: 'Picture: Wheel' }).count(), 1)
    assert.equal(await answer.locator('b, img, a[href^=javascript]').count(), 0)
    assert.match(
      (await page.locator('.conversation [role=status].hidden').textContent())!,
      /^Answer: ## Mills/,
    )
    assert.match(page.url(), /\/chat\/[0-9a-f-]{36}$/)
    assert.deepEqual(await findViolations(page), [])

    models.script = () => ({ pieces: ['A second', ' answer'] })
    await press(page, page.getByRole('button', { name: /^Try again: Mills/ }))
    await page.getByText('2 of 2', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Previous version' }).click()
    await page.getByText('1 of 2', { exact: true }).waitFor()
    await page.getByRole('heading', { name: 'Mills', exact: true }).waitFor()
    await page.getByRole('button', { name: 'Next version' }).click()
    await answers(page).getByText('A second answer').waitFor()

    models.script = () => ({ pieces: ['About wheels'] })
    await page.getByRole('button', { name: /^Edit question/ }).click()
    const editor = page.locator('.edit textarea')
    await editor.fill('Which wheels?')
    await page.keyboard.press('Enter')
    await answers(page).getByText('About wheels').waitFor()
    await page.locator('.message.user').getByText('2 of 2', { exact: true }).waitFor()
    assert.match(lastAsked(), /Which wheels\?/)

    await page.getByRole('button', { name: /^Branch into a new conversation/ }).click()
    await until('the copy is open', () =>
      findSection(page, 'Conversations')
        .locator('tr')
        .count()
        .then((n) => n === 3),
    )
    await answers(page).getByText('About wheels').waitFor()
  })

  test('a person finds, renames and deletes conversations', async (t) => {
    models.script = () => ({ pieces: ['Rye', ' flour'] })
    const page = await open(t, '/chat/new')
    await signIn(page, READER_EMAIL)
    await ask(page, 'Which flour?')
    await answers(page).getByText('Rye flour').waitFor()
    await page.getByRole('button', { name: 'Rename this conversation' }).click()
    await page.getByRole('dialog').getByLabel('Title').fill('Flour')
    await page.keyboard.press('Enter')
    const list = findSection(page, 'Conversations')
    await list.getByRole('link', { name: 'Flour', exact: true }).waitFor()
    await list.getByLabel('Search').fill('rye')
    await list.locator('.snippet').waitFor()
    assert.equal(await list.locator('td.name').count(), 1)
    await page.getByRole('button', { name: 'Delete this conversation' }).click()
    await page.getByText('Ask anything.').waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
    await answers(page).getByText('Rye flour').waitFor()
    await page.getByRole('button', { name: 'Delete this conversation' }).click()
    await until(
      'it is deleted',
      async () => (await query(`select from ai_conversation where title = 'Flour'`)).length === 0,
    )
  })

  test('an answer goes on after a reload and a lost connection, stops, and is asked again after a failure', async (t) => {
    const pieces = Array.from({ length: 60 }, (_, n) => `word${n} `)
    models.script = () => ({ pieces, betweenMs: 40 })
    const page = await open(t, '/chat/new')
    await signIn(page, READER_EMAIL)
    await page.route('**/ai/chat/stream', cutStream, { times: 1 })
    await ask(page, 'Count')
    await page.getByText('word3 ').waitFor()
    await page.reload()
    await page.locator('.writing').getByText('word5 ').waitFor()
    await answers(page).getByText('word59').waitFor()
    assert.equal(models.asked.filter(({ body }) => body.messages.at(-1)!.content === 'Count').length, 1)

    models.script = () => ({ pieces: Array.from({ length: 2000 }, (_, n) => `long${n} `), betweenMs: 20 })
    await ask(page, 'Go on')
    await page.getByText('long2 ').waitFor()
    await page.getByRole('button', { name: 'Stop' }).click()
    await page.getByText('Stopped.').waitFor()

    models.script = () => ({ status: 401 })
    await ask(page, 'Refuse')
    const alert = page.getByRole('alert').filter({ hasText: 'AI provider error' })
    await alert.waitFor()
    models.script = () => ({ pieces: ['Accepted', ' now'] })
    await alert.getByRole('button', { name: 'Try again' }).click()
    await answers(page).getByText('Accepted now').waitFor()
    assert.equal(await page.locator('.message.user').count(), 3)
  })

  test('a person attaches documents, searches a collection and chooses an agent', async (t) => {
    models.script = () => ({ pieces: ['The wheel stays', ' [1].'] })
    const page = await open(t, '/chat/new')
    await signIn(page, READER_EMAIL)
    await page.getByRole('button', { name: 'Attach documents' }).click()
    const file = {
      name: 'survey.txt',
      mimeType: 'text/plain',
      buffer: Buffer.from('The wheel of the northern mill stays.'),
    }
    await page.getByLabel('Upload files').setInputFiles(file)
    await page.getByText('Attached survey.txt').waitFor()
    await ask(page, 'Does it stay?')
    await answers(page).waitFor()
    assert.match(lastAsked(), /northern mill stays/)
    await page.locator('.message.user').getByRole('link', { name: 'survey.txt' }).waitFor()

    await page.getByRole('button', { name: 'Attach documents' }).click()
    await page.getByRole('button', { name: 'Attach survey.txt' }).click()
    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('button', { name: 'Remove survey.txt' }).click()

    const [document] = await query(`select id from document where title = 'survey.txt'`)
    const indexed = await page.request.post(new URL('/rag/index', page.url()).href, {
      data: { collection_name: 'mills', documents: { ids: [Number(document!.id)] } },
    })
    assert.equal(indexed.status(), 200, await indexed.text())
    await page.goto(`${new URL(page.url()).origin}/chat/new`)
    await page.getByLabel('Search in').selectOption('mills')
    await page.getByLabel('Agent').selectOption('miller')
    await ask(page, 'Which wheel stays?')
    await page.getByText('1 source').click()
    const address = `/documents/${String(document!.id)}#page-1`
    assert.equal(await page.locator('.sources a').getAttribute('href'), address)
    assert.equal(await page.getByRole('link', { name: '[1]' }).getAttribute('href'), address)
    assert.equal(models.asked.at(-1)!.body.model, 'gpt-4o')
    await page.reload()
    assert.equal(await page.getByLabel('Agent').inputValue(), 'miller')
    await page.getByText('1 source').waitFor()
    assert.deepEqual(await findViolations(page), [])
  })

  test('a phone shows the list or a conversation', async (t) => {
    const page = await open(t, '/chat')
    await page.setViewportSize({ width: 390, height: 844 })
    await signIn(page, READER_EMAIL)
    const list = findSection(page, 'Conversations')
    await list.locator('td a').first().click()
    await answers(page).first().waitFor()
    assert.equal(await list.isVisible(), false)
    await page.getByRole('link', { name: '‹ Conversations' }).click()
    await list.waitFor()
    assert.equal(await box(page).isVisible(), false)
  })
})
