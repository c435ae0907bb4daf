import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import { until } from '../until.ts'
import { findViolations } from './axe.ts'
import { findChromium, SKIP_REASON } from './chromium.ts'
import { findSection, READER_EMAIL, signIn, startWatchedService } from './watched-service.ts'

/** Writes a blog through the pages: posts, tags, schedules, previews, revisions, imports and exports. */

const chromium = findChromium()

describe('the blog in a browser', {
  skip: chromium === null && SKIP_REASON,
  concurrency: false,
}, async () => {
  if (chromium === null) return
  const { open, query, client } = await startWatchedService(chromium)

  const readPost = async (id: number): Promise<Record<string, unknown>> =>
    (await query('select * from blog_post where id = $1', [id]))[0]!
  const idOf = (page: Page): number => Number(new URL(page.url()).pathname.split('/')[2])

  test('a person writes, saves, publishes, archives and restores a post', async (t) => {
    const page = await open(t, '/write')
    await signIn(page)
    await page.getByText('No posts yet.').waitFor()
    await findSection(page, 'Posts').getByRole('link', { name: 'New post' }).click()
    await page.getByLabel('Title', { exact: true }).fill('The mills')
    await page.getByLabel('Text', { exact: true }).fill('# Mills\n\nThree **mills**.')
    const preview = findSection(page, 'Preview')
    await preview.getByRole('heading', { name: 'Mills', exact: true }).waitFor()
    await preview.locator('strong').getByText('mills').waitFor()
    await page.getByText('Unsaved changes').waitFor()
    await page.getByText('Address, tags and picture').click()
    await page.getByRole('combobox', { name: 'Tags' }).fill('Water')
    await page.keyboard.press('Enter')
    await preview.getByText('Water').waitFor()
    await page.keyboard.press('Control+s')
    await page.getByRole('heading', { name: 'The mills', level: 1 }).waitFor()
    await until('the post has an address', () => idOf(page) > 0)
    const id = idOf(page)
    assert.equal((await readPost(id)).slug, 'the-mills')
    assert.deepEqual(await findViolations(page), [])

    await page.getByLabel('Text', { exact: true }).fill('Another text')
    page.once('dialog', (dialog) => dialog.dismiss())
    await page.getByRole('link', { name: 'Tags' }).click()
    await page.getByText('Unsaved changes').waitFor()
    await page.getByRole('button', { name: 'Publish now' }).click()
    await page.getByText('Public since').waitFor()
    assert.equal((await readPost(id)).content, 'Another text')
    await page.getByRole('button', { name: 'Archive this post' }).click()
    await page.getByRole('button', { name: 'Publish again' }).waitFor()
    await page
      .getByText('Archived', { exact: true })
      .locator('..')
      .getByRole('button', { name: 'Undo' })
      .click()
    await page.getByRole('button', { name: 'Archive this post' }).waitFor()

    const revisions = findSection(page, 'Revisions')
    await revisions.getByRole('button', { name: /^Compare/ }).click()
    await page.locator('.diff .removed').getByText('# Mills').waitFor()
    await page.locator('.diff .added').getByText('Another text').waitFor()
    assert.deepEqual(await findViolations(page), [])
    await page.keyboard.press('Escape')
    await revisions.getByRole('button', { name: /^Restore/ }).click()
    await until(
      'the text is back',
      async () => (await readPost(id)).content === '# Mills\n\nThree **mills**.',
    )
    await page
      .getByText(/^Restored/)
      .locator('..')
      .getByRole('button', { name: 'Undo' })
      .click()
    await until('the restore is undone', async () => (await readPost(id)).content === 'Another text')
    await page.getByText('Undone').waitFor()

    await client.fetch(`/api/v1/blog/posts/${id}`, {
      method: 'PUT',
      headers: { 'content-type': 'application/json' },
      body: '{"title":"Theirs"}',
    })
    await page.getByLabel('Title', { exact: true }).fill('Mine')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByText('This post has changed elsewhere').waitFor()
    await page.getByRole('button', { name: 'Go back' }).click()
    await page.getByText('Not saved.').waitFor()
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('button', { name: 'Save anyway' }).click()
    await page.getByRole('heading', { name: 'Mine', level: 1 }).waitFor()
  })

  test('a person schedules a post, shares a preview, and deletes it', async (t) => {
    const page = await open(t, '/write/new')
    await signIn(page)
    await page.getByLabel('Title', { exact: true }).fill('Later')
    await page.getByLabel('Text', { exact: true }).fill('Soon')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await page.getByRole('button', { name: 'Schedule' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Public from').fill('2099-01-02T10:00')
    await dialog.getByRole('button', { name: 'Schedule' }).click()
    await page.getByText('scheduled', { exact: true }).waitFor()

    await page.getByRole('button', { name: 'Preview link' }).click()
    await dialog.getByRole('button', { name: 'Create link' }).click()
    const link = dialog.getByRole('link')
    const { pathname, hash } = new URL((await link.getAttribute('href'))!)
    await page.keyboard.press('Escape')
    const reviewer = await open(t, pathname + hash)
    await reviewer.getByRole('heading', { name: 'Later', level: 1 }).waitFor()
    await reviewer.getByText('Soon').waitFor()
    assert.deepEqual(await findViolations(reviewer), [])
    await page.getByRole('button', { name: 'Preview link' }).click()
    await dialog.getByRole('button', { name: 'Revoke all links' }).click()
    await page.getByRole('button', { name: 'Revoke links' }).click()
    await page.getByText('All preview links are revoked').waitFor()
    await reviewer.reload()
    await reviewer.getByRole('alert').waitFor()
    await page.keyboard.press('Escape')

    await page.getByRole('button', { name: 'Delete this post' }).click()
    await page.getByRole('button', { name: 'Undo' }).click()
    await page.getByLabel('Title', { exact: true }).waitFor()
    await page.goto(new URL('/write?search=later', page.url()).href)
    const posts = findSection(page, 'Posts')
    await posts.getByRole('button', { name: 'Delete Later' }).click()
    await until(
      'it is gone',
      async () => (await query(`select from blog_post where title = 'Later'`)).length === 0,
    )
  })

  test('a person adds, renames and deletes tags', async (t) => {
    const page = await open(t, '/write/tags')
    await signIn(page)
    await page.getByRole('button', { name: 'New tag' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('Rye')
    await page.keyboard.press('Enter')
    const tags = findSection(page, 'Tags')
    await tags.getByRole('button', { name: 'Rename Rye' }).click()
    await page.getByRole('dialog').getByLabel('Name').fill('Wheat')
    await page.keyboard.press('Enter')
    await tags.getByRole('button', { name: 'Delete Wheat' }).click()
    await page.getByRole('button', { name: 'Undo' }).click()
    await tags.getByRole('button', { name: 'Delete Wheat' }).click()
    await until(
      'the tag is gone',
      async () => (await query(`select from blog_tag where name = 'Wheat'`)).length === 0,
    )
  })

  test('a person imports posts, reads the report, and exports them', async (t) => {
    const page = await open(t, '/write/import')
    await signIn(page)
    const given = JSON.stringify([
      { title: 'One', slug: 'one', content: 'First' },
      { title: 'Two', slug: 'two', content: 'Second' },
    ])
    const file = (text: string) => ({
      name: 'posts.json',
      mimeType: 'application/json',
      buffer: Buffer.from(text),
    })
    await page.getByLabel('File', { exact: true }).setInputFiles(file(given))
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByRole('heading', { name: '2 posts imported' }).waitFor()
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByRole('heading', { name: '0 posts imported' }).waitFor()
    await page.getByRole('row').filter({ hasText: 'one' }).first().waitFor()
    assert.deepEqual(await findViolations(page), [])
    await page.getByLabel('If a post with the same slug exists').selectOption('fail')
    await page.getByRole('button', { name: 'Import', exact: true }).click()
    await page.getByRole('alert').getByRole('button', { name: 'Try again' }).waitFor()

    await page.getByLabel(/^Format/).selectOption('json')
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    const exported = JSON.parse(readFileSync((await (await download).path())!, 'utf8')) as { title: string }[]
    assert.ok(exported.some(({ title }) => title === 'Two'))
  })

  test('readers cannot open the pages, and moderators can', async (t) => {
    const page = await open(t, '/write')
    await signIn(page, READER_EMAIL)
    await page.getByRole('heading', { name: 'Admins only' }).waitFor()
    const [reader] = await query('select id from account where email = $1', [READER_EMAIL])
    const path = `/api/v1/auth/users/${String(reader!.id)}/role?role=moderator`
    assert.equal((await client.fetch(path, { method: 'PATCH' })).status, 200)
    await page.reload()
    await findSection(page, 'Posts').waitFor()
  })
})
