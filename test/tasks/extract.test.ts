import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { noRows, sql } from '../../sql/db.ts'
import { uuidv7 } from '../../sql/ids.ts'
import type { PageResult } from '../../tasks/context.ts'
import { sealPassword, unsealPassword } from '../../tasks/documents/extraction.ts'
import { SecretKeys } from '../../tasks/platform/keys.ts'
import { createTestDatabase } from '../database.ts'
import { FOREIGN_KEYS, KEY_MATERIAL, TEST_KEYS } from '../keys.ts'
import { until } from '../until.ts'
import { assertFailure, blank, createExtractions, createPage } from './extract-help.ts'

const database = await createTestDatabase()
const { query } = database
const { add, run, pages } = createExtractions(database)

const lockPages = sql.type(noRows)`lock table document_page in exclusive mode`
const crash = new Error('the process died here')
const crashAt = (number: number) => (n: number) => {
  if (n === number) throw crash
  return createPage(`Page ${n}`)
}

describe('extracting a document', () => {
  test('reads and reports every page in order, and counts them', async () => {
    const id = await add('hello ', 'wor', 'ld')
    const ran = await run(id, {
      pageCount: 3,
      read: (n) =>
        n === 2
          ? blank
          : n === 3
            ? { ...createPage('seen'), method: 'vision', model: 'm' }
            : createPage('one'),
    })
    assert.deepEqual(ran.result, { read: 2, unread: 1, skipped: 0 })
    assert.equal(ran.bytes, 'hello world')
    assert.deepEqual(await pages(id), ['1 read: one', '2 unread: Nothing to be seen', '3 read: seen'])
    assert.deepEqual(ran.progress, [
      ['Opening the document', undefined, undefined],
      ['Page 1 of 3: text layer', 1, 3],
      ['Page 2 of 3: unread: Nothing to be seen', 2, 3],
      ['Page 3 of 3: read by vision', 3, 3],
    ])
    assert.deepEqual([ran.opened, ran.closed], [1, 1])
    assert.deepEqual(await query('select page_count from document where id = $1', [id]), [{ page_count: 3 }])
  })

  test('logs pages that lost their text, without any of it', async () => {
    const id = await add('x')
    const loss = { kind: 'text/html', unit: 'page', held: 400, read: 3 }
    const logged: unknown[] = []
    await run(id, {
      read: (n) => (n === 2 ? { ...createPage('abc'), detail: 'Lost', loss } : createPage('one')),
      warn: (...line) => void logged.push(line),
    })
    assert.deepEqual(logged, [[{ documentId: id, page: 2, ...loss }, 'A page lost nearly all of its text']])
    assert.deepEqual(await pages(id), ['1 read: one', '2 read: abc', '3 read: one'])
  })

  test('handles a document without pages', async () => {
    const ran = await run(await add(''), { pageCount: 0 })
    assert.deepEqual([ran.result, ran.closed], [{ read: 0, unread: 0, skipped: 0 }, 1])
  })

  test('skips read pages and retries unread ones, or reads all by force', async () => {
    const id = await add('x')
    await run(id, { read: (n) => (n === 2 ? blank : createPage('first')) })
    const second = await run(id, { read: () => createPage('second') })
    assert.deepEqual([second.result, second.read], [{ read: 1, unread: 0, skipped: 2 }, [2]])
    assert.deepEqual(await pages(id), ['1 read: first', '2 read: second', '3 read: first'])
    const third = await run(id, { read: () => createPage('third'), force: true })
    assert.deepEqual([third.result, third.read], [{ read: 3, unread: 0, skipped: 0 }, [1, 2, 3]])
    assert.deepEqual(await pages(id), ['1 read: third', '2 read: third', '3 read: third'])
  })

  test('retries a page that was given up only by force', async () => {
    const id = await add('x')
    await run(id, { read: (n) => (n === 2 ? { ...blank, isGivenUp: true } : createPage('first')) })
    const second = await run(id, { read: () => createPage('second') })
    assert.deepEqual([second.result, second.read], [{ read: 0, unread: 0, skipped: 3 }, []])
    const third = await run(id, { read: () => createPage('third'), force: true })
    assert.deepEqual(third.result, { read: 3, unread: 0, skipped: 0 })
    assert.deepEqual(await pages(id), ['1 read: third', '2 read: third', '3 read: third'])
  })

  test('stores the Markdown of pages, and replaces it when a page is read again', async () => {
    const id = await add('x')
    const readMarkdown = async () =>
      (
        await query('select markdown from document_page where document_id = $1 order by page_number', [id])
      ).map(({ markdown }) => markdown)
    await run(id, { read: (n) => ({ ...createPage(`Page ${n}`), markdown: n === 2 ? null : `# Page ${n}` }) })
    assert.deepEqual(await readMarkdown(), ['# Page 1', null, '# Page 3'])
    await run(id, {
      read: (n) => ({ ...createPage('again'), ...(n === 2 && { markdown: '# 2' }) }),
      force: true,
    })
    assert.deepEqual(await readMarkdown(), [null, '# 2', null])
  })

  test('reads several pages in parallel, and stores them in order', async () => {
    const id = await add('x')
    const slow = Promise.withResolvers<void>()
    const begun: number[] = []
    const ran = await run(id, {
      inHand: 3,
      pageCount: 6,
      read: async (n) => {
        begun.push(n)
        // The first page completes only when no further page can start.
        if (n === 1) await slow.promise
        if (n === 3) setImmediate(slow.resolve)
        return createPage(`Page ${n} of ${begun.length} begun`)
      },
    })
    assert.deepEqual(ran.result, { read: 6, unread: 0, skipped: 0 })
    assert.equal((await pages(id))[0], '1 read: Page 1 of 3 begun')
    assert.deepEqual(ran.progress.slice(1), [
      ['Pages 1 to 3 of 6: text layer', 3, 6],
      ['Pages 4 to 6 of 6: text layer', 6, 6],
    ])
  })

  test('stores and reports fast pages in groups of 32, by kind', async () => {
    const id = await add('x')
    const ran = await run(id, {
      isFast: true,
      pageCount: 40,
      read: (n) => (n === 20 ? blank : createPage(`Page ${n}`)),
    })
    assert.deepEqual(ran.result, { read: 39, unread: 1, skipped: 0 })
    assert.deepEqual(ran.progress.slice(1), [
      ['Pages 1 to 19 of 40: text layer', 19, 40],
      ['Page 20 of 40: unread: Nothing to be seen', 20, 40],
      ['Pages 21 to 32 of 40: text layer', 32, 40],
      ['Pages 33 to 40 of 40: text layer', 40, 40],
    ])
    const stored = await query(
      'select count(*)::int as pages, count(distinct xmin::text)::int as times from document_page where document_id = $1',
      [id],
    )
    assert.deepEqual(stored, [{ pages: 40, times: 2 }])
  })

  test('reads the next pages while storing the ones before', async () => {
    const id = await add('x')
    const [holding, reading] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const hold = (): Promise<void> =>
      database.db.transaction(async (tx) => {
        await tx.run(lockPages)
        holding.resolve()
        await reading.promise
      })
    let held: Promise<void> | undefined
    const ran = await run(id, {
      pageCount: 2,
      read: async (n) => {
        if (n === 1) held = hold()
        await holding.promise
        if (n === 2) reading.resolve()
        return createPage(`Page ${n}`)
      },
    })
    await held
    assert.deepEqual(ran.result, { read: 2, unread: 0, skipped: 0 })
  })

  test('indexes pages when they are stored, and when their text is edited', async () => {
    const id = await add('x')
    const unindexed = `
      select page_number from document_page where document_id = $1 and (search <> search_vector(text)
        or exists (select from unnest(search) where length(lexeme) > 2 and lexeme not in (select word from search_word)))`
    const read = (n: number) => createPage(`Quagga ${n} and all quaggas of herd ${n % 2}`)
    for (const inHand of [4, 1]) {
      await run(id, { inHand, pageCount: 6, read, force: true })
      assert.deepEqual(await query(unindexed, [id]), [])
    }
    await query(`update document_page set text = 'okapi' where document_id = $1 and page_number = 2`, [id])
    assert.deepEqual(await query(unindexed, [id]), [])
    const found = `select page_number from document_page where document_id = $1 and search @@ 'okapi'`
    assert.deepEqual(await query(found, [id]), [{ page_number: 2 }])
  })

  test('stores words that an earlier extraction did not store before it died, without reading', async () => {
    const id = await add('x')
    const read = () => createPage('A numbat')
    await run(id, { pageCount: 1, read })
    await query(`delete from search_word where word = 'numbat'`)
    assert.deepEqual((await run(id, { pageCount: 1, read })).result, { read: 0, unread: 0, skipped: 1 })
    assert.deepEqual(await query(`select word from search_word where word = 'numbat'`), [{ word: 'numbat' }])
  })

  test('stores a text layer with the model that read the pictures next to it', async () => {
    const id = await add('x')
    await run(id, {
      pageCount: 1,
      read: () => ({ ...createPage('Text and a picture'), model: 'tesseract/eng' }),
    })
    assert.deepEqual(await query('select method, model from document_page where document_id = $1', [id]), [
      { method: 'text_layer', model: 'tesseract/eng' },
    ])
  })

  test('deletes pages that no longer exist', async () => {
    const id = await add('x')
    await run(id, { pageCount: 5 })
    const ran = await run(id, { pageCount: 2 })
    assert.deepEqual(ran.result, { read: 0, unread: 0, skipped: 2 })
    assert.equal((await pages(id)).length, 2)
  })

  for (const force of [false, true]) {
    test(`resumes an interrupted attempt (force: ${force})`, async () => {
      const id = await add('x')
      await run(id, { read: () => createPage('old'), pageCount: 4 })
      await query(
        `update document_page set status = 'unread', detail = 'x' where document_id = $1 and page_number > 1`,
        [id],
      )
      const jobId = uuidv7()
      const first = await run(id, { jobId, pageCount: 4, force, read: crashAt(3) })
      assert.deepEqual([first.error, first.closed], [crash, 1])
      const second = await run(id, { jobId, attempt: 2, pageCount: 4, force })
      assert.deepEqual(second.read, [3, 4])
      assert.deepEqual(
        second.result,
        force ? { read: 4, unread: 0, skipped: 0 } : { read: 3, unread: 0, skipped: 1 },
      )
      assert.deepEqual(await pages(id), [
        force ? '1 read: Page 1' : '1 read: old',
        '2 read: Page 2',
        '3 read: Page 3',
        '4 read: Page 4',
      ])
    })
  }

  test('stores nothing more once it is superseded', async () => {
    const id = await add('x')
    const jobId = uuidv7()
    const read = async (n: number): Promise<ReturnType<typeof createPage>> => {
      if (n !== 3) return createPage(`Page ${n}`)
      await until('the first pages are stored', async () => (await pages(id)).length === 2)
      await query('update job set attempt = attempt + 1 where id = $1', [jobId])
      return createPage(`Page ${n}`)
    }
    const ran = await run(id, { jobId, pageCount: 5, read })
    assertFailure(ran.error, 'job.superseded')
    assert.deepEqual([await pages(id), ran.closed], [['1 read: Page 1', '2 read: Page 2'], 1])
  })

  test('ends before the next page when it is aborted, and closes the document', async () => {
    const id = await add('x')
    const abort = new AbortController()
    const ran = await run(id, {
      signal: abort.signal,
      pageCount: 5,
      read: (n) => {
        if (n === 2) abort.abort('cancelled')
        return createPage(`Page ${n}`)
      },
    })
    assert.deepEqual([ran.error, ran.closed, ran.read], ['cancelled', 1, [1, 2]])
    assert.equal((await pages(id)).length, 2)
  })

  test('fails for a document that was deleted meanwhile, and adds no page', async () => {
    const [deleted, gone] = [await add('abc'), await add('abc')]
    await query('update document set deleted_at = now(), expires_at = now() where id = $1', [deleted])
    await query('delete from document where id = $1', [gone])
    for (const id of [deleted, gone]) {
      const ran = await run(id)
      assertFailure(ran.error, 'document.missing')
      assert.equal(ran.opened, 0)
      assert.deepEqual(await query('select from document_page where document_id = $1', [id]), [])
    }
  })

  test('seals a password again under the current key, and retries one of an unknown key', async () => {
    const id = await add('abc')
    const rotated = new SecretKeys({ ...KEY_MATERIAL, secrets: ['n'.repeat(32), ...KEY_MATERIAL.secrets] })
    const seal = (document: number): string => sealPassword(TEST_KEYS, document, 'open')
    const passwords: (string | null | undefined)[] = []
    const open = ({ password }: { readonly password?: string | null }): void => void passwords.push(password)
    assert.equal((await run(id, { seal, keys: rotated, open })).error, null)
    assert.deepEqual(passwords, ['open'])
    const [row] = (await query('select sealed_password from document where id = $1', [id])) as [
      { sealed_password: string },
    ]
    assert.ok(row.sealed_password.startsWith(rotated.currentId))
    assert.equal(unsealPassword(rotated, id, row.sealed_password), 'open')
    const ran = await run(id, { seal, keys: FOREIGN_KEYS })
    assert.match(String(ran.error), /under an unknown SECRET_KEY/)
    assert.equal(ran.opened, 0)
  })

  test('reports bytes that are missing, truncated or too many', async () => {
    const [gone, cut, many] = [await add('abc'), await add('abc', 'def'), await add('abc')]
    await query('delete from blob where sha256 = (select sha256 from document where id = $1)', [gone])
    const blob = '(select b.id from blob b join document d using (sha256) where d.id = $1)'
    await query(`delete from blob_chunk where ordinal = 1 and blob_id = ${blob}`, [cut])
    await query(`update blob_chunk set bytes = 'abcd' where blob_id = ${blob}`, [many])
    for (const id of [gone, cut, many]) {
      const ran = await run(id)
      assertFailure(ran.error, 'document.bytes_missing')
      assert.equal(ran.opened, 0)
    }
  })
})

test("fails over the owner's page quota, and keeps nothing", async () => {
  const [account] = await query(`insert into account (email, password_hash) values ($1, '') returning id`, [
    `${uuidv7()}@example.com`,
  ])
  const settings = { QUOTA_PAGES: '5' }
  const addOwned = async () => {
    const id = await add('x')
    await query('update document set owner_id = $1 where id = $2', [account!.id, id])
    return id
  }
  const [first, second] = [await addOwned(), await addOwned()]
  const counts = { read: 3, unread: 0, skipped: 0 }
  assert.deepEqual((await run(first, { pageCount: 3, settings })).result, counts)
  assert.deepEqual((await run(first, { pageCount: 3, settings, force: true })).result, counts, 'once')
  const refused = await run(second, { pageCount: 3, settings })
  assertFailure(refused.error, 'quota.pages')
  assert.deepEqual([refused.read, refused.closed, await pages(second)], [[], 1, []])
  assert.deepEqual(await query('select page_count from document where id = $1', [second]), [
    { page_count: null },
  ])
  assert.deepEqual((await run(second, { pageCount: 2, settings })).result, { ...counts, read: 2 })
})

describe('the limits of a document', () => {
  const text = 'ä'.repeat(100_000) // 200,000 bytes
  const TEXT = 'The document exceeds its limit of 1068576 bytes of text'

  test("leave later pages unread after too much text for the document's size", async () => {
    const id = await add('x')
    const ran = await run(id, { pageCount: 20, inHand: 8, unpackedBytes: 1000, read: () => createPage(text) })
    assert.deepEqual(ran.result, { read: 5, unread: 15, skipped: 0 })
    const [row] = await query(
      'select sum(octet_length(text))::int as bytes from document_page where document_id = $1',
      [id],
    )
    assert.deepEqual(row, { bytes: 1_000_000 })
    assert.deepEqual((await pages(id)).slice(5, 7), [`6 unread: ${TEXT}`, `7 unread: ${TEXT}`])
  })

  test('include text from earlier extractions, and do not grow with repetition', async () => {
    const id = await add('x')
    const how = { pageCount: 20, unpackedBytes: 1000, read: () => createPage(text) }
    await run(id, { ...how, read: (n) => (n === 3 ? blank : createPage(text)) })
    const second = await run(id, how)
    assert.deepEqual(second.result, { read: 0, unread: 1, skipped: 19 })
    const forced = await run(id, { ...how, force: true })
    assert.deepEqual(forced.result, { read: 5, unread: 15, skipped: 0 })
  })

  test('include Markdown; a page whose Markdown exceeds them keeps its text', async () => {
    const id = await add('x')
    const read = (): PageResult => ({ ...createPage(text), markdown: text })
    const ran = await run(id, { pageCount: 20, unpackedBytes: 1000, read })
    assert.deepEqual(ran.result, { read: 3, unread: 17, skipped: 0 })
    const rows = await query(
      'select markdown is null as lacks from document_page where document_id = $1 order by page_number limit 3',
      [id],
    )
    assert.deepEqual(
      rows.map(({ lacks }) => lacks),
      [false, false, true],
    )
    const second = await run(id, {
      pageCount: 20,
      unpackedBytes: 1000,
      read: () => createPage('short'),
      force: true,
    })
    assert.deepEqual(second.result, { read: 20, unread: 0, skipped: 0 })
  })

  test('come from the settings for large documents', async () => {
    const how = { pageCount: 10, unpackedBytes: 1e9, read: () => createPage(text) }
    const ran = await run(await add('x'), { ...how, settings: { MAX_DOCUMENT_TEXT_BYTES: '500000' } })
    assert.deepEqual(ran.result, { read: 2, unread: 8, skipped: 0 })
  })

  test('leave pages unread once the document has used its CPU time', async () => {
    const id = await add('x')
    const how = { pageCount: 10, read: () => createPage('one'), cpuMs: (read: number) => read * 100_000 }
    const ran = await run(id, how)
    // The limit is 300 s of CPU time; four pages of 100 s exceed it.
    assert.deepEqual(ran.result, { read: 4, unread: 6, skipped: 0 })
    assert.equal(ran.read.length, 4)
    assert.equal((await pages(id))[4], '5 unread: The document exceeds its limit of 300 s of CPU time')
    const settings = { MAX_DOCUMENT_CPU_SECONDS: '150' }
    const less = await run(await add('y'), { ...how, unpackedBytes: 1e9, settings })
    assert.deepEqual(less.result, { read: 2, unread: 8, skipped: 0 })
  })
})
