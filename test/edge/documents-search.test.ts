import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { createEmail, getSharedEdge } from './harness.ts'

const { api, query } = await getSharedEdge()
const PATH = '/api/v1/documents'
let count = 0
const registerAccount = async () => (await api.register(createEmail())).token

interface DocumentFields {
  readonly title?: string
  readonly note?: string
  readonly tag?: string
  readonly pages?: readonly string[]
}

/** Inserts a document with extracted pages. */
async function createDocument(
  token: string,
  { title = 'Untitled', note, tag, pages = [] }: DocumentFields,
): Promise<number> {
  const fields = { title, ...(note === undefined ? {} : { note }) }
  const { id } = (await api.upload(token, `File ${++count}`, { fields })).json
  if (tag !== undefined) await api.post(`${PATH}/${id}/tags`, { token, json: { label: tag } })
  await query(
    `insert into document_page (document_id, page_number, status, method, text, job_id)
    select $1, n, 'read', 'text_layer', text, $2 from unnest($3::text[]) with ordinality as given(text, n)`,
    [id, randomUUID(), pages],
  )
  return id
}

const search = async (token: string, text: string, more = ''): Promise<number[]> => {
  const answer = await api.get(`${PATH}?search=${encodeURIComponent(text)}${more}`, { token })
  assert.equal(answer.status, 200, answer.text)
  assert.equal(answer.json.total >= answer.json.items.length, true)
  return answer.json.items.map((item: { id: number }) => item.id)
}

describe('searching documents', () => {
  test('punctuation and spaces beyond ASCII separate words and appear in results', async () => {
    const token = await registerAccount()
    const text =
      'the “invoice” of mill—wind, Total\u00a0amount €1,284.50… l’école «merci» 10–20 e\u2010mail co\u00adop'
    const ids = [await createDocument(token, { pages: [text] }), await createDocument(token, { note: text })]
    const phrases = ['"the invoice"', '"invoice of"', '"mill wind"', '"total amount"']
    const words = ['wind', "l'école", 'l’école', '“invoice”', '20', '1284.50', '€1,284.50', 'e-mail', 'coop']
    for (const typed of [...phrases, ...words])
      assert.deepEqual((await search(token, typed)).sort(), ids.toSorted(), typed)
    assert.deepEqual(await search(token, 'amount -invoice'), [])
    const { json } = await api.get(`${PATH}?search=invoice&hits=true`, { token })
    const shown = json.items.flatMap(({ hits }: { hits: { snippet: string }[] }) => hits)
    assert.match(shown[0].snippet, /the “invoice” of mill—wind, Total\u00a0amount €1,284\.50/)
  })

  test('finds words in the title, the note, tags and the text of any page', async () => {
    const token = await registerAccount()
    const ids = [
      await createDocument(token, { title: 'About the mill' }),
      await createDocument(token, { note: 'a mill, perhaps' }),
      await createDocument(token, { tag: 'mill' }),
      await createDocument(token, { pages: ['nothing here', 'the MILL turns'] }),
    ]
    await createDocument(token, { title: 'Something else', pages: ['no such word'] })
    assert.deepEqual((await search(token, 'mill')).sort(), ids.sort())
  })

  test('hits have the first matching pages with snippets', async () => {
    const token = await registerAccount()
    const filler = 'word '.repeat(60)
    const pages = ['nothing', `${filler}the Müller and ${filler}`, 'a miller', 'millers', 'mill']
    const id = await createDocument(token, { title: 'Of the mill', pages })
    const titled = await createDocument(token, { title: 'Mill', pages: ['nothing'] })
    const answer = await api.get(`${PATH}?search=mill%20-hidden&hits=true`, { token })
    const hits = new Map(answer.json.items.map((item: { id: number; hits: unknown }) => [item.id, item.hits]))
    assert.deepEqual(hits.get(titled), [])
    assert.deepEqual(hits.get(id), [
      { page_number: 3, snippet: 'a miller' },
      { page_number: 4, snippet: 'millers' },
      { page_number: 5, snippet: 'mill' },
    ])
    const [found] = (await api.get(`${PATH}?search=muller&hits=true`, { token })).json.items
    assert.equal(found.hits.length, 1)
    assert.match(found.hits[0].snippet, /^(word )+the Müller and( word)+$/)
    assert.ok(found.hits[0].snippet.length < 150, found.hits[0].snippet)
    const [without] = (await api.get(`${PATH}?search=muller`, { token })).json.items
    assert.equal('hits' in without, false)
    const [listed] = (await api.get(`${PATH}?hits=true`, { token })).json.items
    assert.equal('hits' in listed, false)
  })

  test('requires every term, in any field', async () => {
    const token = await registerAccount()
    const both = await createDocument(token, { title: 'Invoice', pages: ['from Rotterdam'] })
    await createDocument(token, { title: 'Invoice', pages: ['from Antwerp'] })
    const pages = await createDocument(token, { pages: ['an invoice', 'sent from Rotterdam'] })
    assert.deepEqual((await search(token, 'rotterdam invoice')).sort(), [both, pages].sort())
  })

  test('ignores accents and case in query and text', async () => {
    const token = await registerAccount()
    const id = await createDocument(token, { pages: ['Señor Müller mag Crème brûlée, Ångström und Łódź'] })
    for (const text of ['senor', 'MULLER', 'creme brulee', 'Crème', 'angstrom', 'łodz'])
      assert.deepEqual(await search(token, text), [id], text)
  })

  test('finds words by prefix and substring, and ranks whole words first', async () => {
    const token = await registerAccount()
    const part = await createDocument(token, { pages: ['proforma preinvoiced'] })
    const start = await createDocument(token, { pages: ['the invoices'] })
    const whole = await createDocument(token, { pages: ['the invoice'] })
    assert.deepEqual(await search(token, 'invoice'), [whole, start, part])
    assert.deepEqual((await search(token, 'invo*')).sort(), [part, start, whole].sort())
    assert.deepEqual(await search(token, 'einvoi'), [part])
    assert.deepEqual(await search(token, 'i_voice'), [])
    assert.deepEqual(await search(token, '%voice'), [whole, start, part])
  })

  test('finds quoted words only as a phrase', async () => {
    const token = await registerAccount()
    const id = await createDocument(token, { pages: ['the quick brown fox'] })
    await createDocument(token, { pages: ['brown and quick is the fox'] })
    assert.deepEqual(await search(token, '"quick brown"'), [id])
    assert.deepEqual(await search(token, '"brown quick"'), [])
    assert.deepEqual(await search(token, '"quick bro"'), [])
    assert.deepEqual(await search(token, '"quick brown'), [id], 'an open quote ends with the text')
  })

  test('excludes documents with a term after a minus', async () => {
    const token = await registerAccount()
    const id = await createDocument(token, { title: 'mill', pages: ['water'] })
    await createDocument(token, { title: 'mill', pages: ['wind power'] })
    assert.deepEqual(await search(token, 'mill -wind'), [id])
    assert.deepEqual(await search(token, 'mill -"wind power"'), [id])
  })

  test('ranks title over note, and note over text', async () => {
    const token = await registerAccount()
    const text = await createDocument(token, { pages: ['lighthouse'] })
    const note = await createDocument(token, { note: 'lighthouse' })
    const title = await createDocument(token, { title: 'lighthouse' })
    assert.deepEqual(await search(token, 'lighthouse'), [title, note, text])
  })

  test('finds parts of words in scripts without spaces', async () => {
    const token = await registerAccount()
    const id = await createDocument(token, { pages: ['日本国憲法の前文'] })
    assert.deepEqual(await search(token, '憲法'), [id])
  })

  test('finds only own documents that are not deleted, with other filters, in pages', async () => {
    const [token, stranger] = [await registerAccount(), await registerAccount()]
    await createDocument(stranger, { title: 'shared word' })
    const ids: number[] = []
    for (let i = 0; i < 5; i++) ids.push(await createDocument(token, { title: 'shared word' }))
    const gone = ids.shift()!
    await api.call('DELETE', `${PATH}/${gone}`, { token })
    assert.deepEqual(await search(token, 'shared'), [...ids].reverse(), 'equally good: newest first')
    assert.deepEqual(await search(token, 'shared', '&page=2&page_size=3'), [ids[0]])
    await api.call('PATCH', `${PATH}/${ids[1]}`, { token, json: { kind: 'letter', supersedes_id: ids[0] } })
    assert.deepEqual(await search(token, 'shared', '&kind=letter'), [ids[1]])
    assert.equal((await search(token, 'shared')).includes(ids[0]!), false)
    assert.equal((await search(token, 'shared', '&include_superseded=true')).includes(ids[0]!), true)
  })

  test('finds a hyphenated word at a line break both as a whole and by its parts', async () => {
    const token = await registerAccount()
    const id = await createDocument(token, {
      pages: ['We read of hyphen-\nation and of a well-\n  known mill, of Anna-\nMaria and Grö\u00ad\nße.'],
    })
    for (const found of [
      'hyphenation',
      'hyphen',
      '"of hyphenation and"',
      'known',
      'wellknown',
      'well-known',
      'größe',
    ])
      assert.deepEqual(await search(token, found), [id], found)
    for (const found of ['annamaria', 'hyphenoid', '"hyphen and"'])
      assert.deepEqual(await search(token, found), [], found)
    const [{ hits }] = (await api.get(`${PATH}?search=hyphenation&hits=true`, { token })).json.items
    assert.match(hits[0].snippet, /of hyphenation and/)
  })

  test('finds an amount in any notation', async () => {
    const token = await registerAccount()
    const notations = ['1,284.50', '1.284,50', '1284.50', '1284,50', "1'284.50", '1 284,50']
    const ids: number[] = []
    for (const amount of notations)
      ids.push(await createDocument(token, { pages: [`In all EUR ${amount} are due`] }))
    await createDocument(token, { pages: ['1,284 and 50, or 284.50, or 12,845.01, or 50 of 284'] })
    for (const amount of [...notations.slice(0, 5), '€1,284.50', '$1284.50'])
      assert.deepEqual((await search(token, amount)).sort(), [...ids].sort(), amount)
    const large = await createDocument(token, { title: '12,345,678 ships' })
    for (const amount of ['12345678', '12,345,678', '12.345.678', "12'345'678"])
      assert.deepEqual(await search(token, amount), [large], amount)
    const small = await createDocument(token, { title: 'Fee 12.50' })
    assert.deepEqual(await search(token, '12,50'), [small])
    assert.deepEqual(await search(token, '2026'), [], 'a year is no amount')
    assert.deepEqual(await search(token, 'fee -12,50'), [], 'an amount that must not occur')
  })

  test('finds a date in any notation', async () => {
    const token = await registerAccount()
    const written = [
      '2026-03-14',
      '14.03.2026',
      '14.3.2026',
      '14.03.26',
      '03/14/2026',
      '3/14/2026',
      '14/03/2026',
      '20260314',
      '14 March 2026',
      'March 14, 2026',
      'March 14th, 2026',
      '14 Mar. 2026',
      '14. März 2026',
      '14 mars 2026',
      '14 de marzo de 2026',
    ]
    const ids: number[] = []
    for (const day of written) ids.push(await createDocument(token, { pages: [`Dated ${day}, at the mill`] }))
    const dated = (
      await api.upload(token, `File ${++count}`, { fields: { title: 'Dated', document_date: '2026-03-14' } })
    ).json.id
    await createDocument(token, {
      pages: ['14 March 2025, 13 March 2026, 4 March 2026, 03/15/2026, 14 of 2026 in March'],
    })
    const all = [...ids, dated].sort()
    for (const day of [
      '2026-03-14',
      '14.03.2026',
      '14.3.2026',
      '3/14/2026',
      '14/3/2026',
      '"14 March 2026"',
      '"March 14, 2026"',
      '"14. März 2026"',
    ])
      assert.deepEqual((await search(token, day)).sort(), all, day)
    for (const day of ['2026-02-30', '2026-13-01', '99/99/2026', '"14 Mill 2026"'])
      assert.deepEqual(await search(token, day), [], day)
    const either = await createDocument(token, { pages: ['Due 5 April 2026'] })
    const other = await createDocument(token, { pages: ['Due 4 May 2026'] })
    assert.deepEqual((await search(token, '04/05/2026')).sort(), [either, other].sort(), 'either order')
  })

  test('finds a long word despite one typo if there is no exact match', async () => {
    const token = await registerAccount()
    const id = await createDocument(token, { title: 'The harbour office', pages: ['invoices of Müller'] })
    for (const typed of [
      'harbuor',
      'harbor',
      'harbouur',
      'harboar',
      'xarbour',
      'harbous',
      'ofice',
      'offcie',
      'invioces',
      'muelle',
    ])
      assert.deepEqual(await search(token, typed), typed === 'ofice' || typed === 'muelle' ? [] : [id], typed)
    for (const typed of ['hrabuor', 'harbourman', 'offfficce', '"harbuor"'])
      assert.deepEqual(await search(token, typed), [], typed)
    assert.deepEqual(await search(token, 'harbuor -office'), [])
    assert.deepEqual(await search(token, 'office -harbuor'), [id], 'what must not occur is not guessed')
    const numbered = await createDocument(token, { title: 'K123456' })
    assert.deepEqual(await search(token, 'K123457'), [])
    assert.deepEqual(await search(token, 'K12345'), [numbered])
    const exact = await createDocument(token, { title: 'harbuor' })
    assert.deepEqual(await search(token, 'harbuor'), [exact], 'what is there as typed is not guessed')
  })

  test('accepts any input without an error', async () => {
    const token = await registerAccount()
    const id = await createDocument(token, { title: `O'Neil's C:\\path a&b (c|d) <-> !x 50%` })
    const odd = [
      '',
      ' ',
      '""',
      '"',
      '-',
      '*',
      '!',
      '&',
      '|',
      '(',
      ')',
      ':*',
      '\\',
      "'",
      "''",
      '<->',
      'a:b',
      '-""',
    ]
    for (const text of odd) await search(token, text)
    assert.deepEqual(await search(token, `"O'Neil's"`), [id])
    assert.deepEqual(await search(token, `O'Nei`), [id])
    assert.deepEqual(await search(token, 'C:\\path'), [id])
    assert.deepEqual(await search(token, Array(40).fill('path').join(' ')), [id])
    assert.equal((await api.get(`${PATH}?search=${'x'.repeat(501)}`, { token })).status, 422)
    assert.equal((await api.get(`${PATH}?search=%00`, { token })).status, 422)
  })

  test('stores a page of any length and finds it by its beginning', async () => {
    const token = await registerAccount()
    const words = Array.from({ length: 150_000 }, (_, i) => `w${i.toString(36)}漢${i}`).join(' ')
    const id = await createDocument(token, { pages: [`beginning ${words}`] })
    assert.deepEqual(await search(token, 'beginning'), [id])
  })
})
