import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Page } from 'playwright-core'
import * as crash from '../flow/crash.ts'
import { buildScanPdf, buildTextPdf } from '../pdfs.ts'
import { until } from '../until.ts'
import { findViolations } from './axe.ts'
import { findChromium, SKIP_REASON } from './chromium.ts'
import { findSection, press, READER_EMAIL, signIn, startWatchedService } from './watched-service.ts'

/** Tests the pages of documents as a person without a terminal uses them. */

const chromium = findChromium()

const text = (name: string, content: string) => ({
  name,
  mimeType: 'text/plain',
  buffer: Buffer.from(content),
})

describe('documents in a browser', {
  skip: chromium === null && SKIP_REASON,
  concurrency: false,
}, async () => {
  if (chromium === null) return
  const { query, client, open } = await startWatchedService(chromium)

  const findRow = (page: Page, title: string) =>
    page.getByRole('row').filter({ has: page.getByRole('link', { name: title, exact: true }) })
  const select = (page: Page, title: string) =>
    page.getByRole('checkbox', { name: `Select ${title}`, exact: true }).check()
  const undo = (page: Page, text: string) =>
    page.locator('.toast', { hasText: text }).getByRole('button', { name: 'Undo' }).click()
  const upload = (page: Page, files: readonly ReturnType<typeof text>[]) =>
    page.locator('input[type=file]').first().setInputFiles(files)

  /** Drops files on the page, as from the desktop. */
  async function drop(page: Page, files: Readonly<Record<string, string>>): Promise<void> {
    const data = await page.evaluateHandle(`(() => {
      const transfer = new DataTransfer()
      for (const [name, content] of ${JSON.stringify(Object.entries(files))}) transfer.items.add(new File([content], name))
      return transfer
    })()`)
    await page.dispatchEvent('body', 'dragenter', { dataTransfer: data })
    await page.getByText('Drop files to upload them').waitFor()
    await page.dispatchEvent('body', 'drop', { dataTransfer: data })
  }

  test('a person uploads, finds, tags, renames, deletes and restores documents', async (t) => {
    const page = await open(t, '/documents')
    await signIn(page, READER_EMAIL)
    await page.getByText('You have no documents.', { exact: false }).waitFor()
    assert.deepEqual(await findViolations(page), [])

    await drop(page, { 'Lease.txt': 'The tenant pays the rent in Bremen.', 'Note.txt': 'Buy bread.' })
    await upload(page, [text('Letter.txt', 'Greetings from the coast.')])
    const uploads = findSection(page, 'Uploads')
    await uploads.getByText('3 of 3 files done').waitFor()
    await upload(page, [text('Same.txt', 'Buy bread.')])
    await uploads.getByText('4 of 4 files done').waitFor()
    await uploads.getByText('Already here').waitFor()
    assert.deepEqual(await findViolations(page), [])
    for (const title of ['Lease.txt', 'Note.txt', 'Letter.txt'])
      await findRow(page, title).getByRole('cell', { name: '1', exact: true }).waitFor()
    await uploads.getByRole('button', { name: 'Clear' }).click()
    await uploads.waitFor({ state: 'hidden' })

    await page.getByLabel('Search titles and text').fill('rents')
    const found = findRow(page, 'Lease.txt')
    await found.locator('mark', { hasText: 'rent' }).waitFor()
    await findRow(page, 'Note.txt').waitFor({ state: 'detached' })
    assert.equal(new URL(page.url()).searchParams.get('search'), 'rents')
    await found.getByRole('link', { name: 'Page 1 of Lease.txt' }).click()
    await page.getByRole('heading', { name: 'Lease.txt', level: 1 }).waitFor()
    await page.getByRole('region', { name: 'Text of page 1' }).locator('mark', { hasText: 'rent' }).waitFor()
    await page.goBack()
    await page.getByLabel('Search titles and text').fill('')
    await findRow(page, 'Note.txt').waitFor()

    await select(page, 'Lease.txt')
    await select(page, 'Letter.txt')
    await page.getByRole('button', { name: 'Add tag' }).click()
    await page.getByRole('dialog').getByLabel('Tag').fill('paper')
    await page.keyboard.press('Enter')
    await page.getByText('Tagged 2 documents with paper').waitFor()
    await findRow(page, 'Lease.txt')
      .getByRole('button', { name: 'Show documents with the tag paper' })
      .click()
    await findRow(page, 'Note.txt').waitFor({ state: 'detached' })
    assert.equal(new URL(page.url()).searchParams.get('tag'), 'paper')
    await page.getByRole('button', { name: 'Remove tag paper' }).click()
    await findRow(page, 'Note.txt').waitFor()

    await page.getByRole('button', { name: 'Edit Note.txt' }).click()
    const form = page.getByRole('dialog')
    await form.getByLabel('Title').fill('Shopping')
    await form.getByLabel('Kind').fill('list')
    await form.getByRole('button', { name: 'Save' }).click()
    await findRow(page, 'Shopping').getByRole('cell', { name: 'list' }).waitFor()

    await page.getByRole('button', { name: 'Delete Shopping' }).click()
    await page.getByText('Shopping is in the trash').waitFor()
    await findRow(page, 'Shopping').waitFor({ state: 'detached' })
    await undo(page, 'Shopping is in the trash')
    await findRow(page, 'Shopping').waitFor()
    await select(page, 'Shopping')
    await select(page, 'Letter.txt')
    await page.getByRole('group', { name: 'Selected rows' }).getByRole('button', { name: 'Delete' }).click()
    await page.getByText('2 documents moved to the trash').waitFor()

    await page.getByRole('link', { name: 'Trash' }).click()
    await page.getByRole('button', { name: 'Restore Letter.txt' }).click()
    await page.getByText('Restored Letter.txt').waitFor()
    await page.getByRole('button', { name: 'Delete forever: Shopping' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Delete forever' }).click()
    await page.getByText('The trash is empty.').waitFor()
    assert.deepEqual(await findViolations(page), [])
    await page.getByRole('link', { name: 'Documents', exact: true }).last().click()
    await findRow(page, 'Letter.txt').waitFor()
  })

  test('a failed upload says why and can be tried again', async (t) => {
    const page = await open(t, '/documents')
    await signIn(page, READER_EMAIL)
    await findRow(page, 'Lease.txt').waitFor()
    const uploads = findSection(page, 'Uploads')
    await page.route('**/api/v1/documents', (route) =>
      route.request().method() === 'POST' ? route.abort() : route.fallback(),
    )
    await upload(page, [text('Lost.txt', 'Lost and found.')])
    await uploads.getByText(/^The connection was lost\./).waitFor()
    await page.unroute('**/api/v1/documents')
    await uploads.getByRole('button', { name: 'Try Lost.txt again' }).click()
    await uploads.getByText('1 of 1 file done').waitFor()
    await findRow(page, 'Lost.txt').getByRole('cell', { name: '1', exact: true }).waitFor()
    await upload(page, [text('Empty.txt', '')])
    await uploads.getByText(/empty/i).waitFor()
    await uploads.getByRole('button', { name: 'Cancel the upload of Empty.txt' }).click()
    await uploads.getByText('1 of 1 file done').waitFor()
  })

  test('a document appears page by page; keys, the search and the strip lead through it', async (t) => {
    const page = await open(t, '/documents')
    await signIn(page)
    // Enough pages that the first appears before the last is stored.
    const PAGES = 100
    const line = (n: number): string => (n === 70 ? 'a needle' : 'filled in')
    const buffer = Buffer.from(await buildTextPdf(PAGES, { line }))
    await upload(page, [{ name: 'Minutes.pdf', mimeType: 'application/pdf', buffer }])
    await findSection(page, 'Uploads')
      .getByText(/^Pages? (\d+ to )?\d+ of 100/)
      .waitFor()
    await findRow(page, 'Minutes.pdf').getByRole('link', { name: 'Minutes.pdf', exact: true }).click()
    await page.getByRole('heading', { name: 'Minutes.pdf', level: 1 }).waitFor()
    // The first pages must appear with image and text before the last ones are extracted.
    const textOf = (n: number) => page.getByRole('region', { name: `Text of page ${n}`, exact: true })
    await textOf(1).getByText(`Page 1 of ${PAGES}`).waitFor()
    const [row] = await query(
      `select status from job where name = 'documents.extract' order by id desc limit 1`,
    )
    assert.equal(row!.status, 'running')
    await page.getByText(`${PAGES} of ${PAGES} pages read`).waitFor()
    await page.getByText(`${PAGES} with a text layer`).waitFor()
    const picture = page.getByRole('img', { name: 'Image of page 1', exact: true })
    const isDrawn = () =>
      picture.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth > 100)
    assert.ok(await until('an image', isDrawn))

    const number = page.getByRole('spinbutton', { name: 'Page' })
    await page.keyboard.press('j')
    assert.equal(await number.inputValue(), '2')
    await page.keyboard.press('k')
    assert.equal(await number.inputValue(), '1')
    await page.getByLabel('Find').fill('needle')
    await page.getByText('On 1 page', { exact: true }).waitFor()
    await page.keyboard.press('Enter')
    await textOf(70).locator('mark', { hasText: 'needle' }).waitFor()
    await page.locator('#page-70 .marks rect').waitFor()
    assert.equal(new URL(page.url()).hash, '#page-70')
    await number.fill(String(PAGES))
    await page.keyboard.press('Enter')
    await textOf(PAGES).getByText('filled in').waitFor()
    assert.deepEqual(await findViolations(page), [])

    await page.evaluate(
      'window.print = () => { globalThis.printed = document.querySelectorAll(".print section").length }',
    )
    await page.getByRole('button', { name: 'Print text' }).click()
    await until('the text is printed', () => page.evaluate(`globalThis.printed === ${PAGES}`))
  })

  test('the words of a search are marked on the picture of a scan', async (t) => {
    const scan = await buildScanPdf(1)
    const { id } = (await (await client.upload(scan, 'Scan.pdf')).json()) as { id: number }
    await crash.waitForJob(query, await crash.extract(client, id))
    const page = await open(t, `/documents/${id}?search=harbour`)
    await signIn(page)
    await page.locator('#page-1 mark', { hasText: 'harbour' }).waitFor()
    assert.ok(await until('a mark', async () => (await page.locator('#page-1 .marks rect').count()) === 1))
    const [mark, picture] = await Promise.all(
      ['#page-1 .marks rect', '#page-1 .picture'].map(
        async (part) => (await page.locator(part).boundingBox())!,
      ),
    )
    // The word is at the top of the page, behind its margin.
    assert.ok(
      Math.abs((mark!.x - picture!.x) / picture!.width - 0.14) < 0.01,
      JSON.stringify([mark, picture]),
    )
    assert.ok((mark!.y - picture!.y) / picture!.height < 0.25)
  })

  test('the page of a document changes its properties, tags and versions, and deletes it with an undo', async (t) => {
    const { id } = (await (
      await client.upload(Buffer.from('# Rules\n\n1. Be kind.'), 'Rules.md')
    ).json()) as {
      id: number
    }
    await crash.waitForJob(query, await crash.extract(client, id))
    const page = await open(t, `/documents/${id}`)
    await signIn(page)
    await page.getByText('1 of 1 page read').waitFor()
    await page.getByLabel('View').selectOption('markdown')
    await page.getByRole('button', { name: 'Copy Markdown of page 1' }).waitFor()
    await page.getByRole('region', { name: 'Text of page 1' }).getByText('Rules').first().waitFor()

    const about = findSection(page, 'About')
    await about.getByLabel('Add a tag').fill('house')
    await page.keyboard.press('Enter')
    await about.getByRole('link', { name: 'house' }).waitFor()
    await about.getByRole('button', { name: 'Remove the tag house' }).click()
    await about.getByRole('link', { name: 'house' }).waitFor({ state: 'detached' })
    await undo(page, 'Removed the tag house')
    await about.getByRole('link', { name: 'house' }).waitFor()
    await about.getByRole('button', { name: 'Edit the properties' }).click()
    await page.getByRole('dialog').getByLabel('Title').fill('House rules')
    await page.getByRole('dialog').getByLabel('Note').fill('Read them.')
    await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click()
    await page.getByRole('heading', { name: 'House rules', level: 1 }).waitFor()
    await about.getByText('Read them.').waitFor()

    await about.getByRole('button', { name: 'Read again' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Read', exact: true }).click()
    await page.getByText('The document has been read').waitFor()

    await about
      .locator('input[type=file]')
      .setInputFiles(text('Rules 2.md', '# Rules\n\n1. Be kind and quick.'))
    await page.getByRole('heading', { name: 'Rules 2.md', level: 1 }).waitFor()
    await about.getByRole('link', { name: 'House rules' }).click()
    await about.getByText('This is an older version.').waitFor()
    assert.deepEqual(await findViolations(page), [])

    await press(page, about.getByRole('button', { name: 'Delete the document' }))
    await about.getByText('This document is in the trash.').waitFor()
    await undo(page, 'House rules is in the trash')
    await about.getByRole('button', { name: 'Read again' }).waitFor()
  })

  test('an open page shows the start and end of an extraction that another client requested', async (t) => {
    const id = await crash.uploadText(client, 100, 'elsewhere')
    const page = await open(t, `/documents/${id}`)
    await signIn(page)
    await page.getByText('Not read yet').waitFor()
    await page.getByText('This document must be read before you can ask about it.').waitFor()
    await page.getByText('Live', { exact: true }).waitFor()
    const first = await crash.extract(client, id)
    const link = page.getByRole('link', { name: 'Job', exact: true })
    assert.equal(await link.getAttribute('href'), `/monitor/jobs/${first}`)
    const label = page.locator('p.label')
    await label.getByText(/^Pages? (\d+ to )?\d+ of 100/).waitFor()
    await page.getByText('100 of 100 pages read').waitFor()
    // Start a second extraction, because the stream of the first has ended.
    await client.fetch(`/api/v1/documents/${id}/extract?background=true&force=true`, { method: 'POST' })
    await label.getByText(/^Pages? (\d+ to )?\d+ of 100/).waitFor()
    await page.getByText('100 of 100 pages read').waitFor()
  })

  test('a question shows the matching passages of a document or a selection, with links to their pages', async (t) => {
    const id = await crash.uploadText(client, 3, 'asked')
    const page = await open(t, `/documents/${id}`)
    await signIn(page)
    await page.getByRole('button', { name: 'Read it now' }).click()
    await page.getByText('3 of 3 pages read').waitFor()
    const box = page.getByLabel('Question about this document')
    await box.fill('What does page 2 say?')
    await box.press('Enter')
    const answer = findSection(page, 'Ask')
    // The service under test has no model.
    await answer.getByText(/^No model answered/).waitFor()
    await answer.getByRole('link', { name: 'Page 2', exact: true }).click()
    assert.equal(new URL(page.url()).hash, '#page-2')
    await box.fill('zebras')
    await page.getByRole('button', { name: 'Ask', exact: true }).click()
    await answer.getByText('Nothing was found in this document.').waitFor()

    await crash.uploadText(client, 2, 'unasked')
    await page.getByRole('link', { name: 'Documents', exact: true }).last().click()
    await select(page, 'asked.pdf')
    await select(page, 'unasked.pdf')
    await page.getByRole('button', { name: 'Ask', exact: true }).click()
    const dialog = page.getByRole('dialog', { name: 'Ask 2 documents' })
    await dialog.getByText('1 document must be read first.', { exact: false }).waitFor()
    await dialog.getByRole('button', { name: 'Read them now' }).click()
    await dialog.getByText('must be read first', { exact: false }).waitFor({ state: 'hidden' })
    await dialog.getByLabel('Question about 2 documents').fill('unasked')
    await page.keyboard.press('Enter')
    const source = dialog.getByRole('link', { name: 'unasked.pdf, page 1' })
    assert.match((await source.getAttribute('href'))!, /^\/documents\/\d+\?search=unasked#page-1$/)
    assert.deepEqual(await findViolations(page), [])
    const countCollections = async (): Promise<unknown> =>
      (await query('select count(*)::int as n from rag_collection where deleted_at is null'))[0]!.n
    assert.equal(await countCollections(), 2)
    await page.keyboard.press('Escape')
    await until('the collection of the selection is deleted', async () => (await countCollections()) === 1)
  })
})
